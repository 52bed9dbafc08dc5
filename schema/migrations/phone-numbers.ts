/**
 * Telephone numbers and blocks of them. The calling numbers of customers move here;
 * `customer_number` becomes a view of those that a customer owns one by one.
 */
import { noteEachRow } from './first/instances.ts'

const withoutSeparators = ['-', '.', '(', ')', ' '].reduce(
  (text, separator) => `replace(${text}, '${separator}', '')`,
  'number',
)

const withoutPlus = (text: string): string =>
  `CASE WHEN substr(${text}, 1, 1) = '+' THEN substr(${text}, 2) ELSE ${text} END`

/**
 * As `numberKey` (`schema/rules/number-ranges.ts`): what is a number without its separators is one,
 * everything else stays as it is.
 */
const otherSigns = `ltrim(${withoutPlus('plain')}, '0123456789*#')`
const spelled = `CASE WHEN plain NOT IN ('', '+') AND ${otherSigns} = ''
      THEN plain ELSE number END`

export const sql = `
-- first_number and last_number are without a plus; of a single number, both are the same. digits is
-- their length, and 0 of what is no plain number, such as a user name: no block contains it. target
-- is that of an inbound route, or null.
CREATE TABLE phone_number (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER REFERENCES tenant (id),
  number TEXT NOT NULL,
  first_number TEXT NOT NULL,
  last_number TEXT NOT NULL,
  digits INTEGER NOT NULL,
  customer_id INTEGER REFERENCES customer (id),
  target_type TEXT CHECK (target_type IN ('set', 'extension', 'agent')),
  target TEXT,
  display_name TEXT,
  emergency_address TEXT,
  verified_since_at INTEGER,
  attestation TEXT CHECK (attestation IN ('A', 'B', 'C')),
  monthly_fee_micros INTEGER NOT NULL DEFAULT 0 CHECK (monthly_fee_micros >= 0),
  is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX phone_number_number ON phone_number (number);
CREATE INDEX phone_number_range ON phone_number (digits, first_number);
CREATE INDEX phone_number_order ON phone_number (first_number, id);
CREATE INDEX phone_number_tenant ON phone_number (tenant_id, first_number, id);
CREATE INDEX phone_number_customer ON phone_number (customer_id);

-- Two spellings of one number are one row.
INSERT INTO phone_number
  (tenant_id, number, first_number, last_number, digits, customer_id, created_at, updated_at)
SELECT tenant_id, number, number_key, number_key,
  CASE WHEN ltrim(number_key, '0123456789') = '' THEN length(number_key) ELSE 0 END,
  customer_id, created_at, created_at
FROM (
  SELECT number, number_key, customer_id,
    row_number() OVER (PARTITION BY number_key ORDER BY number) AS place
  FROM (
    SELECT number, customer_id, ${withoutPlus('spelled')} AS number_key
    FROM (
      SELECT number, customer_id, ${spelled} AS spelled
      FROM (SELECT number, customer_id, ${withoutSeparators} AS plain FROM customer_number) AS read
    ) AS normal
  ) AS keyed
) AS moved JOIN customer ON customer.id = customer_id
WHERE place = 1 ORDER BY number;

DROP TABLE customer_number;
CREATE VIEW customer_number AS
SELECT number, customer_id FROM phone_number
WHERE customer_id IS NOT NULL AND first_number = last_number;
`

/** Payers are told of the customers, the directory of numbers of the rows. */
export const forServer = `
${noteEachRow('phone_number', 'id')}
CREATE FUNCTION note_customers_of_numbers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE ids text[];
BEGIN
  IF TG_OP = 'UPDATE' THEN
    ids := ARRAY(SELECT customer_id::text FROM changed WHERE customer_id IS NOT NULL
      UNION SELECT customer_id::text FROM added WHERE customer_id IS NOT NULL LIMIT 101);
  ELSE
    ids := ARRAY(SELECT DISTINCT customer_id::text FROM changed
      WHERE customer_id IS NOT NULL LIMIT 101);
  END IF;
  IF cardinality(ids) > 100 THEN ids := ARRAY['']; END IF;
  PERFORM note_change_of('customer', id) FROM unnest(ids) AS id;
  RETURN NULL;
END $$;
CREATE TRIGGER note_customers_of_insert AFTER INSERT ON phone_number
  REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_customers_of_numbers();
CREATE TRIGGER note_customers_of_update AFTER UPDATE ON phone_number
  REFERENCING OLD TABLE AS changed NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION note_customers_of_numbers();
CREATE TRIGGER note_customers_of_delete AFTER DELETE ON phone_number
  REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_customers_of_numbers();
`
