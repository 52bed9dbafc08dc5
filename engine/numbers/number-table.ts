/** Numbers and blocks by number: one step for a single number, a binary search for a block. */
import { Buckets } from '../../schema/buckets.ts'
import { MAX_BLOCK_DIGITS, numberKey } from '../../schema/rules/number-ranges.ts'

/** A row of the table: a single number has the same `first` and `last`. */
export interface Numbered {
  /** In normal form; a plus makes no difference. */
  readonly first: string
  readonly last: string
}

/** The API lets no blocks overlap; where they do all the same, one of them is found. */
export class NumberTable<Row extends Numbered> {
  readonly #singles = new Buckets<string, Row>()
  /** Blocks by the length of their numbers. */
  readonly #blocks = new Map<number, Blocks<Row>>()

  /** The row of a number in normal form; a single number counts before a block around it. */
  find(number: string): Row | undefined {
    const key = number.startsWith('+') ? number.slice(1) : number
    const singles = this.#singles.of(key)
    // The same spelling counts before another one, and of two the one that was stored last.
    if (singles.length > 0) return singles.findLast((row) => row.first === number) ?? singles.at(-1)
    const blocks = this.#blocks.get(key.length)
    return blocks !== undefined && /^[0-9]+$/.test(key) ? blocks.find(Number(key)) : undefined
  }

  add(row: Row): void {
    const first = numberKey(row.first)
    const last = numberKey(row.last)
    if (first === last) return this.#singles.add(first, row)
    const { length } = first
    if (length > MAX_BLOCK_DIGITS || last.length !== length) return
    const blocks = this.#blocks.get(length) ?? new Blocks()
    this.#blocks.set(length, blocks)
    blocks.add({ first: Number(first), last: Number(last), row })
  }

  delete(row: Row): void {
    const first = numberKey(row.first)
    this.#singles.delete(first, row)
    this.#blocks.get(first.length)?.delete(row)
  }
}

interface Block<Row> {
  readonly first: number
  readonly last: number
  readonly row: Row
}

/** Blocks of one length. They are sorted before the first look-up after a change. */
class Blocks<Row> {
  #blocks: Block<Row>[] = []
  #isSorted = true

  add(block: Block<Row>): void {
    const before = this.#blocks.at(-1)
    if (before !== undefined && before.first > block.first) this.#isSorted = false
    this.#blocks.push(block)
  }

  delete(row: Row): void {
    const index = this.#blocks.findIndex((block) => block.row === row)
    if (index !== -1) this.#blocks.splice(index, 1)
  }

  find(value: number): Row | undefined {
    if (!this.#isSorted) this.#blocks.sort((one, other) => one.first - other.first)
    this.#isSorted = true
    const block = this.#blocks[this.#countUpTo(value) - 1]
    return block !== undefined && value <= block.last ? block.row : undefined
  }

  /** Returns how many blocks begin at `value` or before. */
  #countUpTo(value: number): number {
    let from = 0
    let to = this.#blocks.length
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((this.#blocks[middle]?.first ?? Infinity) <= value) from = middle + 1
      else to = middle
    }
    return from
  }
}
