/** How calls hunt after an answer of a carrier: JSON of what differs from the usual, or null. */
export const sql = `
ALTER TABLE carrier ADD COLUMN hunting TEXT;
`
