/**
 * The text of a migration for PostgreSQL. Migrations are written once, in what both databases understand and
 * the few words of SQLite that `server-words.ts` knows.
 */
import type { Relaxed } from '../rebuild.ts'
import type { Migration } from './index.ts'
import { serverWords } from './server-words.ts'

const trigger =
  /CREATE TRIGGER (\w+) BEFORE (\w+) ON (\w+)\s+(?:WHEN ([^;]+?)\s+)?BEGIN SELECT RAISE\(ABORT, ('[^']*')\); END;/g

export function forPostgres({ relaxed = [], sql, forServer = '' }: Migration): string {
  const triggered = serverWords(sql).replace(
    trigger,
    (_, name: string, event: string, table: string, when: string | undefined, message: string) => `
CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ${when ?? 'TRUE'} THEN
    RAISE EXCEPTION ${message} USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER ${name} BEFORE ${event} ON ${table} FOR EACH ROW EXECUTE FUNCTION ${name}();`,
  )
  return `${relaxed.map(relaxedConstraint).join('')}${triggered}${forServer}`
}

/** The names are those that PostgreSQL gives by itself. */
function relaxedConstraint({ table, part, replacement }: Relaxed): string {
  const [, unique] = /^(\w+) .* UNIQUE$/.exec(part) ?? /^(\w+) TEXT UNIQUE$/.exec(part) ?? []
  const change = `ALTER TABLE "${table}" DROP CONSTRAINT`
  if (unique !== undefined) return `${change} ${table}_${unique}_key;\n`
  const [, checked = ''] = /^CHECK \((\w+) /.exec(part) ?? []
  return `${change} ${table}_${checked}_check, ADD CONSTRAINT ${table}_${checked}_check ${replacement};\n`
}
