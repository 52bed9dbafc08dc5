/** The local files that a file of hooks imports; packages are not among them. */
import nodeModule from 'node:module'
import { fileURLToPath } from 'node:url'

/** A file that imports more is watched in part. */
const MAX_FILES = 500

export class ImportedFiles {
  readonly #files = new Set<string>()
  #fresh: string[] = []

  /** Notes from now on what this thread imports and requires. Node 22.14 and older do not tell. */
  watch(): void {
    nodeModule.registerHooks?.({
      resolve: (specifier, context, next) => {
        try {
          const resolved = next(specifier, context)
          this.add(resolved.url)
          return resolved
        } catch (error) {
          // It may be there when the file is loaded again.
          this.#addMissing(specifier, context.parentURL)
          throw error
        }
      },
    })
  }

  add(url: string): void {
    if (!url.startsWith('file:') || url.includes('/node_modules/')) return
    const path = fileURLToPath(url.replace(/[?#].*$/, ''))
    if (this.#files.has(path) || this.#files.size >= MAX_FILES) return
    this.#files.add(path)
    this.#fresh.push(path)
  }

  /** Whether this Node tells what is imported. */
  get isComplete(): boolean {
    return nodeModule.registerHooks !== undefined
  }

  get all(): readonly string[] {
    return [...this.#files]
  }

  /** Files since the last call. */
  takeFresh(): readonly string[] {
    const fresh = this.#fresh
    if (fresh.length > 0) this.#fresh = []
    return fresh
  }

  #addMissing(specifier: string, parent: string | undefined): void {
    if (!/^(?:\.{0,2}\/|file:)/.test(specifier) || parent === undefined) return
    if (URL.canParse(specifier, parent)) this.add(new URL(specifier, parent).href)
  }
}
