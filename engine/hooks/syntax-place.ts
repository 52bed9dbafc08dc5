/** Finds the place of an error for which Node names none. */
import { readFileSync } from 'node:fs'
import nodeModule from 'node:module'
import { describeThrown, placeless, type ThrownProblem } from './thrown.ts'

/**
 * Node says nothing of where a JavaScript module breaks the grammar, and which line imports a
 * module that is not there.
 *
 * @param files those that were read, absolute paths; the first is that of the hooks.
 */
export function withPlace(
  problem: ThrownProblem,
  error: unknown,
  files: readonly string[],
  ownFolder: string,
): ThrownProblem {
  if (problem.file !== null || !(error instanceof Error)) return problem
  if (error instanceof SyntaxError) return grammarProblem(files, ownFolder) ?? problem
  const [, missing, importer] =
    /^Cannot find (?:module|package) '([^']+)' imported from (.+)$/.exec(error.message) ?? []
  if (missing === undefined || importer === undefined) return problem
  if (missing === files[0]) return { ...placeless('there is no such file'), file: missing }
  if (!files.includes(importer)) return problem
  const name = missing.split(/[\\/]/).at(-1) ?? missing
  const lines = textOf(importer).split('\n')
  const line = lines.findIndex((text) => /['"]/.test(text) && text.includes(name))
  return { ...problem, file: importer, line: line < 0 ? null : line + 1 }
}

/** Types are stripped by a parser that says where it has stopped. */
function grammarProblem(files: readonly string[], ownFolder: string): ThrownProblem | undefined {
  for (const file of files.filter((path) => /\.[cm]?[jt]s$/.test(path)))
    try {
      nodeModule.stripTypeScriptTypes?.(textOf(file), { sourceUrl: file })
    } catch (error) {
      const found = describeThrown(error, ownFolder)
      if (found.file !== null) return found
    }
  return undefined
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
