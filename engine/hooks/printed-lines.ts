/** Lines that a file of hooks prints, so many in a second; pure. */
import type { PrintedLine } from './thread-messages.ts'

/** Lines of a second. */
const MAX_LINES = 50
const MAX_LINE_LENGTH = 1_000

export class PrintedLines {
  #lines: PrintedLine[] = []
  #dropped = 0
  /** Lines of the present second. */
  #count = 0
  /** Begun lines by level. */
  readonly #begun = { info: '', warn: '' }

  /** `text`: as it was written to a stream; a line may come in pieces. */
  add(level: PrintedLine['level'], text: string): void {
    const [first = '', ...more] = text.slice(0, MAX_LINES * MAX_LINE_LENGTH).split('\n')
    const lines = [this.#begun[level] + first, ...more]
    this.#begun[level] = (lines.pop() ?? '').slice(0, MAX_LINE_LENGTH)
    for (const line of lines) this.#addLine({ level, text: line.slice(0, MAX_LINE_LENGTH) })
  }

  /** Takes what has been printed; to be called often. Undefined: nothing. */
  take(): { readonly lines: readonly PrintedLine[]; readonly dropped: number } | undefined {
    if (this.#lines.length + this.#dropped === 0) return undefined
    const taken = { lines: this.#lines, dropped: this.#dropped }
    this.#lines = []
    this.#dropped = 0
    return taken
  }

  /** Another second has begun. */
  renew(): void {
    this.#count = 0
  }

  #addLine(line: PrintedLine): void {
    if (line.text.trim() === '') return
    this.#count += 1
    if (this.#count > MAX_LINES) this.#dropped += 1
    else this.#lines.push(line)
  }
}
