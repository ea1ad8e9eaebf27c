package standin

// failRate sends the 429 of a limit per day or per minute.
func (c *call) failRate(bucket, per string, limit int64) {
	name := c.s.api.Metrics[bucket]
	quotaLimit, unit := name[1]+"PerDayPerProject", "1/d/{project}"
	if per == "minute" {
		quotaLimit, unit = name[1]+"PerMinutePerProject", "1/min/{project}"
	}
	c.fail("rateLimitExceeded", object{"metric": name[0], "period": per, "bucket": bucket,
		"quota_limit": quotaLimit, "unit": unit, "limit": decimal(limit)})
}

// failIf sends the error with that name and adds one to counter, unless it is nil. It does nothing
// if name is "".
func (c *call) failIf(name string, m method, counter *int64) {
	if name == "" {
		return
	}
	if counter != nil {
		c.count(counter)
	}
	if name == "minute" || name == "day" {
		c.failRate(m.bucket, name, 1)
	}
	c.fail(name, object{"called": m.id})
}

// replace sends the response of a fault that replaces the real one, and ends the handler.
func (c *call) replace(m method) {
	c.failIf(c.s.api.Faults[c.fault].Replaces, m, nil)
	switch c.fault {
	case "200-html":
		c.html(200, "Sorry")
	case "500-html":
		c.html(500, "Server Error")
	case "500-null":
		c.json(500, object{"error": object{"code": 500, "message": nil}})
	case "drop", "hang":
		c.dropResponse()
	default:
		return
	}
	panic(errEnded)
}
