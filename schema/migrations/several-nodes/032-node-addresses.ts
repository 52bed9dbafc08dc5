/** From which addresses the SIP requests of a node come: not always from the one that takes those of the others. */
export const sql = `
ALTER TABLE node ADD COLUMN sip_addresses TEXT NOT NULL DEFAULT '';
`
