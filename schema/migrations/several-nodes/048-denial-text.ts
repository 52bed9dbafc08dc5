/** The sentence that says why the platform refused or ended a call, as it was made then. */
export const sql = `
ALTER TABLE cdr ADD COLUMN denial_text TEXT;
`
