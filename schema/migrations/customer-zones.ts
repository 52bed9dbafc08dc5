/** The time zone of a customer. */
export const sql = 'ALTER TABLE customer ADD COLUMN time_zone TEXT;'
