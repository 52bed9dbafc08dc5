/** Alerts: channels, rules, what is being alerted of, and the messages about it. */
import { noteAnyChange } from './first/instances.ts'

export const sql = `
-- secret is what the kind keeps from everybody: the password of the mail server, the address of
-- a Slack webhook, the key of PagerDuty, or the signing secret of a webhook.
CREATE TABLE alert_channel (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id),
  kind TEXT NOT NULL CHECK (kind IN ('email', 'slack', 'pagerduty', 'webhook')),
  recipients TEXT,
  sender TEXT,
  smtp_host TEXT,
  smtp_port INTEGER CHECK (smtp_port BETWEEN 1 AND 65535),
  smtp_tls TEXT CHECK (smtp_tls IN ('starttls', 'tls', 'none')),
  smtp_user TEXT,
  url TEXT,
  secret TEXT,
  is_enabled INTEGER NOT NULL CHECK (is_enabled IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX alert_channel_name ON alert_channel (name, coalesce(tenant_id, 0));
CREATE INDEX alert_channel_order ON alert_channel (name);
CREATE INDEX alert_channel_tenant ON alert_channel (tenant_id, name);

CREATE TABLE alert_rule (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id),
  kind TEXT NOT NULL,
  severity TEXT NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
  threshold REAL,
  window_seconds INTEGER NOT NULL CHECK (window_seconds BETWEEN 300 AND 86400),
  least_calls INTEGER NOT NULL CHECK (least_calls BETWEEN 1 AND 1000000),
  for_seconds INTEGER NOT NULL CHECK (for_seconds BETWEEN 0 AND 86400),
  customer_id INTEGER REFERENCES customer (id),
  carrier_id INTEGER REFERENCES carrier (id),
  node TEXT,
  least_severity TEXT CHECK (least_severity IN ('medium', 'high', 'critical')),
  group_seconds INTEGER NOT NULL CHECK (group_seconds BETWEEN 0 AND 86400),
  quiet_hours TEXT,
  is_enabled INTEGER NOT NULL CHECK (is_enabled IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX alert_rule_name ON alert_rule (name, coalesce(tenant_id, 0));
CREATE INDEX alert_rule_order ON alert_rule (name);
CREATE INDEX alert_rule_tenant ON alert_rule (tenant_id, name);
CREATE INDEX alert_rule_customer ON alert_rule (customer_id) WHERE customer_id IS NOT NULL;
CREATE INDEX alert_rule_carrier ON alert_rule (carrier_id) WHERE carrier_id IS NOT NULL;

CREATE TABLE alert_rule_channel (
  rule_id INTEGER NOT NULL REFERENCES alert_rule (id) ON DELETE CASCADE,
  channel_id INTEGER NOT NULL REFERENCES alert_channel (id),
  PRIMARY KEY (rule_id, channel_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_rule_channel_channel ON alert_rule_channel (channel_id);

-- Events for rules, written in the transactions that make them true, and removed in the one that
-- opens and closes alerts by them.
CREATE TABLE alert_event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  type TEXT NOT NULL,
  tenant_id INTEGER,
  data TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;

-- The rule and its name stay when it is removed. One subject has one alert that is not over.
CREATE TABLE alert (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  rule_id INTEGER NOT NULL,
  rule TEXT NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  severity TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'open', 'closed')),
  text TEXT NOT NULL,
  figures TEXT NOT NULL,
  path TEXT NOT NULL,
  events INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  opened_at INTEGER,
  closed_at INTEGER,
  closed_by TEXT
) STRICT;
CREATE UNIQUE INDEX alert_subject ON alert (rule_id, subject) WHERE state <> 'closed';
CREATE INDEX alert_tenant ON alert (tenant_id, id);
CREATE INDEX alert_waiting ON alert (due_at) WHERE state = 'waiting';

-- A message of the rule NULL is a test.
CREATE TABLE alert_message (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  channel_id INTEGER NOT NULL REFERENCES alert_channel (id) ON DELETE CASCADE,
  rule_id INTEGER,
  after_id INTEGER,
  body TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL,
  last_attempt_at INTEGER,
  last_error TEXT,
  created_at INTEGER NOT NULL,
  claimed_by TEXT,
  claimed_until INTEGER
) STRICT;
CREATE INDEX alert_message_due ON alert_message (next_attempt_at) WHERE state = 'pending';
CREATE INDEX alert_message_channel ON alert_message (channel_id, id);
CREATE INDEX alert_message_claimed ON alert_message (claimed_by) WHERE claimed_by IS NOT NULL;

-- What one channel is told of one alert; message_id is null until its group is complete. kind
-- can be there once only: nobody is told twice.
CREATE TABLE alert_notice (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  alert_id INTEGER NOT NULL REFERENCES alert (id) ON DELETE CASCADE,
  channel_id INTEGER NOT NULL REFERENCES alert_channel (id) ON DELETE CASCADE,
  rule_id INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('opened', 'recovered')),
  at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  message_id INTEGER REFERENCES alert_message (id) ON DELETE CASCADE,
  UNIQUE (alert_id, channel_id, kind)
) STRICT;
CREATE INDEX alert_notice_gathering ON alert_notice (channel_id, rule_id, due_at)
  WHERE message_id IS NULL;
CREATE INDEX alert_notice_message ON alert_notice (message_id);
`

export const forServer =
  noteAnyChange('alert_channel') + noteAnyChange('alert_rule') + noteAnyChange('alert_rule_channel')
