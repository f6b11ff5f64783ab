create sequence millrace.job_number as bigint;

create table millrace.expiring (
  expires_at bigint not null,
  ref bigint not null
);

create table millrace.history (
  ref bigint not null,
  settled_at bigint not null,
  started_at bigint,
  keep_until bigint,
  state text not null,
  attempt integer,
  retries integer,
  crashes integer,
  worker text,
  result text,
  result_bytes bytea,
  error text,
  reason text,
  log text
);

create table millrace.identity (
  token text not null
);

create table millrace.jobs (
  ref bigint not null,
  id uuid not null,
  created_at bigint not null,
  due_at bigint not null,
  expires_at bigint,
  lane integer not null,
  priority integer not null,
  attempt integer,
  retries integer,
  crashes integer,
  suspect boolean default false not null,
  key text,
  payload text,
  bytes bytea,
  options text,
  error text,
  reason text,
  log text
);

create table millrace.keys (
  name text not null,
  key text not null,
  ref bigint not null
);

create table millrace.lanes (
  lane integer generated always as identity not null,
  queue text not null,
  name text not null
);

create table millrace.leases (
  fence bigint not null,
  worker text not null,
  alone boolean not null,
  claimed_at bigint not null,
  starting integer not null,
  refs bigint[] not null,
  gone bigint[] default '{}'::bigint[] not null
);

create table millrace.migrations (
  version integer not null,
  name text not null,
  applied_at timestamp with time zone default now() not null
);

create table millrace.pauses (
  queue text not null,
  until bigint,
  paused_at bigint not null
);

create table millrace.ready (
  lane integer not null,
  sort bigint not null,
  ref bigint not null
) with (autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=10000);

create table millrace.reports (
  ref bigint not null,
  fence bigint not null,
  started_at bigint not null,
  progress text
);

create table millrace.uniques (
  name text not null,
  key text not null,
  ref bigint not null,
  id uuid not null,
  until bigint
);

create table millrace.waiting (
  ref bigint not null,
  lane integer not null,
  state text not null,
  due_at bigint not null
);

create table millrace.wishes (
  ref bigint not null,
  kind text not null,
  reason text not null,
  keep_ms bigint,
  asked_at bigint not null
);

create table millrace.workers (
  worker text not null,
  beat bigint default 0 not null,
  host text not null,
  pid integer not null,
  started_at bigint not null
) with (fillfactor=50);

alter table millrace.expiring add constraint expiring_pkey PRIMARY KEY (expires_at, ref);

alter table millrace.history add constraint history_pkey PRIMARY KEY (ref);

alter table millrace.history add constraint history_state_check CHECK ((state = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text])));

alter table millrace.jobs add constraint jobs_check CHECK (((payload IS NULL) <> (bytes IS NULL)));

alter table millrace.jobs add constraint jobs_pkey PRIMARY KEY (ref);

alter table millrace.keys add constraint keys_pkey PRIMARY KEY (name, key);

alter table millrace.lanes add constraint lanes_pkey PRIMARY KEY (lane);

alter table millrace.lanes add constraint lanes_queue_name_key UNIQUE (queue, name);

alter table millrace.leases add constraint leases_pkey PRIMARY KEY (fence);

alter table millrace.migrations add constraint migrations_pkey PRIMARY KEY (version);

alter table millrace.pauses add constraint pauses_pkey PRIMARY KEY (queue);

alter table millrace.ready add constraint ready_pkey PRIMARY KEY (lane, sort, ref);

alter table millrace.reports add constraint reports_pkey PRIMARY KEY (ref);

alter table millrace.uniques add constraint uniques_pkey PRIMARY KEY (name, key);

alter table millrace.waiting add constraint waiting_pkey PRIMARY KEY (ref);

alter table millrace.waiting add constraint waiting_state_check CHECK ((state = ANY (ARRAY['ready'::text, 'scheduled'::text, 'retrying'::text, 'blocked'::text, 'paused'::text, 'parked'::text])));

alter table millrace.wishes add constraint wishes_kind_check CHECK ((kind = ANY (ARRAY['cancel'::text, 'pause'::text])));

alter table millrace.wishes add constraint wishes_pkey PRIMARY KEY (ref);

alter table millrace.workers add constraint workers_pkey PRIMARY KEY (worker);

CREATE INDEX history_keep ON millrace.history USING btree (keep_until) WHERE (keep_until IS NOT NULL);

CREATE INDEX jobs_id ON millrace.jobs USING btree (id);

CREATE INDEX jobs_key ON millrace.jobs USING btree (key, ref) WHERE (key IS NOT NULL);

CREATE INDEX leases_worker ON millrace.leases USING btree (worker);

CREATE INDEX waiting_due ON millrace.waiting USING btree (due_at) WHERE (state = ANY (ARRAY['scheduled'::text, 'retrying'::text]));

CREATE INDEX waiting_suspect ON millrace.waiting USING btree (lane) WHERE (state = 'ready'::text);
