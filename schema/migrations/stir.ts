/** Keys that sign calls, and authorities whose signatures are trusted. */
import { noteAnyChange } from './first/instances.ts'

export const sql = `
CREATE TABLE stir_key (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  tenant_id INTEGER REFERENCES tenant (id),
  private_key TEXT NOT NULL,
  certificate TEXT,
  x5u TEXT,
  -- Milliseconds UTC; null: as the certificate says.
  valid_from INTEGER,
  valid_until INTEGER,
  is_active INTEGER NOT NULL CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (certificate IS NOT NULL OR x5u IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX stir_key_name ON stir_key (name, coalesce(tenant_id, 0));
CREATE INDEX stir_key_owner ON stir_key (tenant_id, name);

-- The platform trusts them, so none is a tenant's: the column is that of every noun.
CREATE TABLE stir_authority (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  tenant_id INTEGER REFERENCES tenant (id) CHECK (tenant_id IS NULL),
  certificate TEXT NOT NULL,
  is_active INTEGER NOT NULL CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX stir_authority_owner ON stir_authority (tenant_id, name);
`

export const forServer = noteAnyChange('stir_key') + noteAnyChange('stir_authority')
