import type { Row } from './cluster-books.ts'

/** Prints a table. The process fails if a row is wrong. */
export function reportRows(rows: readonly Row[]): void {
  console.log('')
  for (const [what, seen, isRight] of rows)
    console.log(`  ${what.padEnd(78)}${seen}${isRight ? '' : '  ← WRONG'}`)
  const wrong = rows.filter(([, , isRight]) => !isRight).length
  console.log(wrong === 0 ? '  all of it is right' : `  ${wrong} rows are wrong`)
  if (wrong > 0) process.exitCode = 1
}
