/** A thing that was looked at, its finding, and whether that is right. */
export type Row = readonly [what: string, seen: string, isRight: boolean]

/** Prints a table. The process fails if a row is wrong. */
export function reportRows(rows: readonly Row[]): void {
  for (const [what, seen, isRight] of rows)
    console.log(`  ${what.padEnd(78)}${seen}${isRight ? '' : '  ← WRONG'}`)
  const wrong = rows.filter(([, , isRight]) => !isRight).length
  console.log(wrong === 0 ? '  all of it is right' : `  ${wrong} rows are wrong`)
  if (wrong > 0) process.exitCode = 1
}
