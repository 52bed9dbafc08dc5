/** Beside what was measured of a call: by what, and of each direction. */
export const sql = `
ALTER TABLE cdr ADD COLUMN mos_source TEXT CHECK (mos_source IN ('measured', 'computed', 'reported'));
ALTER TABLE cdr ADD COLUMN media_quality TEXT;
`
