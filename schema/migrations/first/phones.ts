/** Extensions, where their phones are, and AI agents. */
import { noteEachRow } from './notices.ts'

export const sql = `
CREATE TABLE extension (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenant (id),
  domain TEXT NOT NULL REFERENCES tenant_domain (domain),
  extension TEXT NOT NULL,
  display_name TEXT NOT NULL,
  email TEXT,
  customer_id INTEGER REFERENCES customer (id),
  ha1_md5 TEXT NOT NULL,
  ha1_sha256 TEXT NOT NULL,
  voicemail_enabled INTEGER NOT NULL DEFAULT 1 CHECK (voicemail_enabled IN (0, 1)),
  call_recording TEXT NOT NULL DEFAULT 'always' CHECK (call_recording IN ('always', 'never', 'on_demand')),
  media TEXT CHECK (media IN ('bypass', 'prefer', 'anchor')),
  media_profile TEXT NOT NULL DEFAULT 'auto' CHECK (media_profile IN ('auto', 'rtp', 'srtp', 'webrtc')),
  codecs TEXT,
  dtmf TEXT NOT NULL DEFAULT 'auto' CHECK (dtmf IN ('auto', 'rfc4733', 'info')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (domain, extension)
) STRICT;
CREATE INDEX extension_number ON extension (extension, domain);
CREATE INDEX extension_tenant ON extension (tenant_id, extension, domain);

-- Contacts of registered phones. node has the way to the phone: its connection, or the socket
-- that a NAT lets answer.
CREATE TABLE binding (
  id INTEGER PRIMARY KEY,
  extension_id INTEGER NOT NULL REFERENCES extension (id) ON DELETE CASCADE,
  contact TEXT NOT NULL,
  instance TEXT,
  reg_id INTEGER,
  q INTEGER NOT NULL CHECK (q BETWEEN 0 AND 1000),
  call_id TEXT NOT NULL,
  cseq INTEGER NOT NULL,
  path TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  source_protocol TEXT NOT NULL,
  source_address TEXT NOT NULL,
  source_port INTEGER NOT NULL,
  node TEXT NOT NULL DEFAULT '',
  registered_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  UNIQUE (extension_id, contact)
) STRICT;
CREATE INDEX binding_expiry ON binding (expires_at);

-- Wrong passwords of phones, by hour, extension (0: one that does not exist) and source.
CREATE TABLE wrong_password (
  hour INTEGER NOT NULL,
  tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
  extension_id INTEGER NOT NULL,
  source TEXT NOT NULL,
  failures INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (hour, tenant_id, extension_id, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX wrong_password_tenant ON wrong_password (tenant_id, hour);

-- AI agents: extension numbers with a SIP URI.
CREATE TABLE ai_agent (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER REFERENCES tenant (id),
  name TEXT NOT NULL,
  extension TEXT NOT NULL,
  sip_uri TEXT NOT NULL,
  description TEXT,
  max_calls INTEGER NOT NULL DEFAULT 0 CHECK (max_calls >= 0),
  media TEXT CHECK (media IN ('bypass', 'prefer', 'anchor')),
  media_profile TEXT NOT NULL DEFAULT 'auto' CHECK (media_profile IN ('auto', 'rtp', 'srtp', 'webrtc')),
  codecs TEXT,
  dtmf TEXT NOT NULL DEFAULT 'auto' CHECK (dtmf IN ('auto', 'rfc4733', 'info')),
  strip_headers TEXT,
  is_by_tenant INTEGER NOT NULL DEFAULT 0 CHECK (is_by_tenant IN (0, 1)),
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ai_agent_extension ON ai_agent (coalesce(tenant_id, 0), extension);
CREATE INDEX ai_agent_tenant ON ai_agent (tenant_id, name);
CREATE UNIQUE INDEX ai_agent_name ON ai_agent (name, coalesce(tenant_id, 0));
`

export const forServer = `
${noteEachRow('ai_agent', 'id')}
CREATE FUNCTION note_change_of_extensions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE ids text[];
BEGIN
  ids := ARRAY(SELECT id::text FROM changed LIMIT 9);
  IF cardinality(ids) > 8 THEN ids := ARRAY['']; END IF;
  PERFORM note_change_of('extension', id) FROM unnest(ids) AS id;
  RETURN NULL;
END $$;
CREATE TRIGGER note_insert AFTER INSERT ON extension REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_extensions();
CREATE TRIGGER note_update AFTER UPDATE ON extension REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_extensions();
CREATE TRIGGER note_delete AFTER DELETE ON extension REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_extensions();
`
