/** The files of the project as the tests of its habits read them, and the exceptions from a rule. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Complaint {
  readonly path: string
  readonly what: string
}

/** `rule: path` → why this one file may. An entry that is no longer needed is a complaint, too. */
export class Exceptions {
  readonly #reasons: Readonly<Record<string, string>>
  readonly #used = new Set<string>()

  constructor(reasons: Readonly<Record<string, string>>) {
    this.#reasons = reasons
  }

  /** The complaints of one rule, without those that have an exception. */
  without(rule: string, complaints: readonly Complaint[]): string[] {
    return complaints
      .filter(({ path }) => {
        const key = `${rule}: ${path}`
        if (!(key in this.#reasons)) return true
        this.#used.add(key)
        return false
      })
      .map(({ path, what }) => `${path}: ${what}`)
  }

  /** Exceptions that no complaint has needed. */
  unused(): string[] {
    return Object.keys(this.#reasons).filter((key) => !this.#used.has(key))
  }
}

/** What the package of the SIP server is made of, once it has been built. */
const built = 'engine/sip-server/dist/'

export function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.startsWith(built))
}

/** Comments blanked, lines kept; a quoted text is passed over so that `//` in it stays. */
function withoutComments(text: string): string {
  return text.replace(
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (match) => (match.startsWith('/') ? match.replace(/[^\n]/g, ' ') : match),
  )
}

const files = ['engine', 'control', 'schema', 'test'].flatMap((root) => filesUnder(root))
export const sources = files.filter((path) => /\.(?:tsx?|mjs)$/.test(path))
export const production = sources.filter((path) => !path.startsWith('test/'))
export const documents = [...readdirSync('.'), ...files].filter((path) => path.endsWith('.md'))
export const textOf = new Map(sources.map((path) => [path, readFileSync(path, 'utf8')]))
export const codeOf = new Map([...textOf].map(([path, text]) => [path, withoutComments(text)]))

export const holds = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(`${folder}/`)

export const lineNumber = (text: string, index: number): number =>
  text.slice(0, index).split('\n').length
