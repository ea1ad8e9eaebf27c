package config

import (
	"cmp"
	"maps"
	"slices"

	"quotabudget/internal/grammar"
	"quotabudget/internal/regions"
	"quotabudget/internal/words"
)

const staggerAuto = "auto"

// ingest sets the sweep and the daemon.
func (r *reader) ingest(f *fileIngest, at grammar.Place) {
	in, d := &r.cfg.Ingest, &r.cfg.Daemon
	defaults := in.Regions
	zone, stagger := in.Timezone, in.Stagger
	*in, *d = f.Ingest, f.Daemon
	in.Scheduled, in.Timezone, in.Stagger = true, zone, stagger
	if in.Regions = defaults; f.Regions != nil {
		in.Regions = r.regions(f.Regions, at.Key("regions"))
	}
	if f.Timezone != "" {
		in.Timezone, _ = parseZone(f.Timezone)
	}
	if d.StaggerAuto = f.Stagger == staggerAuto; d.StaggerAuto {
		in.Stagger = 0
	} else if f.Stagger != "" {
		in.Stagger, _ = grammar.ParseDuration(f.Stagger, 0, maxOffset)
	}
	names := slices.Collect(maps.Keys(r.credentials))
	if len(names) == 0 {
		names = append(names, DefaultCredential)
	}
	if in.Credential != "" && !slices.Contains(names, in.Credential) {
		at.Key("credential").Add("no credential %q%s", words.Clip(in.Credential),
			words.DidYouMean(in.Credential, names))
	}
	for i, job := range f.Jobs {
		if r.file.Full() {
			return
		}
		r.sweep(job, at.Key("jobs").Item(i))
	}
	d.Weights = r.perRegion(f.Weights, at.Key("weights"))
	d.Priorities = r.perRegion(f.Priorities, at.Key("priorities"))
	d.Floors = r.perRegion(f.Floors, at.Key("floors"))
}

// sweep sets regions with their own schedule. Its defaults are the keys of ingest.
func (r *reader) sweep(f fileSweep, at grammar.Place) {
	in := &r.cfg.Ingest
	j := Job{Name: f.Name, Schedule: cmp.Or(f.Schedule, in.Schedule), Timezone: in.Timezone,
		Pages: cmp.Or(f.Pages, in.Pages)}
	if f.Timezone != "" {
		j.Timezone, _ = parseZone(f.Timezone)
	}
	r.jobName(f.Name, at.Key("name"))
	r.refuseDefaultJob(f.Name, at.Key("name"))
	j.Regions = r.regions(f.Regions, at.Key("regions"))
	for _, region := range j.Regions {
		if job, ok := r.jobOf[region]; ok {
			at.Key("regions").Add("%s is already in job %s: a region can be in only one job",
				region, job)
		}
		r.jobOf[region] = j.Name
		if !slices.Contains(in.Regions, region) {
			in.Regions = append(slices.Clip(in.Regions), region)
		}
	}
	r.cfg.Daemon.Jobs = append(r.cfg.Daemon.Jobs, j)
}

func (r *reader) regions(codes []string, at grammar.Place) []regions.Region {
	var list []regions.Region
	for i, code := range codes {
		region, err := regions.Parse(code)
		switch {
		case err != nil: // reported by the schema
		case slices.Contains(list, region):
			at.Item(i).Add("%s is listed twice", region)
		default:
			list = append(list, region)
		}
	}
	return list
}

// perRegion requires that numbers are for regions that are fetched.
func (r *reader) perRegion(numbers map[string]int64, at grammar.Place) map[regions.Region]int64 {
	if numbers == nil {
		return nil
	}
	byRegion := make(map[regions.Region]int64)
	for _, code := range at.Keys() {
		region, err := regions.Parse(code)
		_, again := byRegion[region]
		switch {
		case err != nil:
			at.Key(code).Add("%v", err)
		case again:
			at.Key(code).Add("%s is listed twice", region)
		case !slices.Contains(r.cfg.Ingest.Regions, region):
			at.Key(code).Add("is not among the regions")
		default:
			byRegion[region] = numbers[code]
		}
	}
	return byRegion
}

func (r *reader) jobName(name string, at grammar.Place) {
	if !firstNew(r.jobNames, name) {
		at.Add("two jobs are named %s", words.Clip(name))
	}
}

// refuseDefaultJob reports a job with the name of the sweep.
func (r *reader) refuseDefaultJob(name string, at grammar.Place) {
	if name == DefaultJob {
		at.Add("%s is the job of the regions that are in no other: choose another name", DefaultJob)
	}
}
