/** The files of the project as the tests of its structure read them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Files that builds have written beside the sources. */
const built = ['engine/sip-server/dist/', 'control/client/operations.ts']

export const filesUnder = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !built.some((start) => path.startsWith(start)))

/** Comments blanked, lines kept; a quoted text is passed over so that `//` in it stays. */
const withoutComments = (text: string): string =>
  text.replace(/'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (match) =>
    match.startsWith('/') ? match.replace(/[^\n]/g, ' ') : match,
  )

/** The text of each file of the product. */
export const textOf = new Map(
  ['engine', 'control', 'schema']
    .flatMap((root) => filesUnder(root))
    .filter((path) => /\.(?:tsx?|mjs)$/.test(path))
    .map((path) => [path, readFileSync(path, 'utf8')]),
)

/** The code of each file of the product. */
export const codeOf = new Map([...textOf].map(([path, text]) => [path, withoutComments(text)]))

export const holds = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(`${folder}/`)
