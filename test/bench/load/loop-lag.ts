/**
 * How late the event loop of a started program is: what a datagram waits that comes at any moment.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { TollgateProcess } from '../../support/tollgate-process.ts'
import { eventually } from '../../support/waiting.ts'

export interface LoopLag {
  readonly samples: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

export class LoopWatch {
  readonly #folder = mkdtempSync(join(tmpdir(), 'loop-lag-'))
  readonly #file = join(this.#folder, 'lag.json')

  /** The options for the environment of the program. */
  get environment(): { readonly NODE_OPTIONS: string; readonly LOOP_LAG_FILE: string } {
    const watcher = pathToFileURL(join(import.meta.dirname, 'watch-loop.mjs')).href
    return { NODE_OPTIONS: `--import=${watcher}`, LOOP_LAG_FILE: this.#file }
  }

  /** Since it was asked last. */
  async lagOf(program: TollgateProcess): Promise<LoopLag> {
    rmSync(this.#file, { force: true })
    program.signal('SIGWINCH')
    return eventually(() => JSON.parse(readFileSync(this.#file, 'utf8')) as LoopLag)
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
