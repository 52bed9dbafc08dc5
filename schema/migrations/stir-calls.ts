/** Policies of carriers for signed calls, and the word of signatures in call records. */
export const sql = `
ALTER TABLE carrier ADD COLUMN stir_sign INTEGER NOT NULL DEFAULT 0 CHECK (stir_sign IN (0, 1));
ALTER TABLE carrier ADD COLUMN stir_verify TEXT NOT NULL DEFAULT 'off'
  CHECK (stir_verify IN ('off', 'mark', 'refuse'));
ALTER TABLE inbound_route ADD COLUMN verification TEXT
  CHECK (verification IN ('passed', 'failed', 'none'));
ALTER TABLE cdr ADD COLUMN verification TEXT;
ALTER TABLE cdr ADD COLUMN verstat TEXT;
ALTER TABLE cdr ADD COLUMN attestation TEXT;
`
