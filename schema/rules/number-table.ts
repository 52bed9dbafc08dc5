/** Numbers and blocks by number: one step for a single number, a binary search for a block. */
import { MAX_BLOCK_DIGITS, numberKey } from './number-ranges.ts'

/** A row of the table: a single number has the same `first` and `last`. */
export interface Numbered {
  /** In normal form; a plus makes no difference. */
  readonly first: string
  readonly last: string
}

/** The API lets no blocks overlap; where they do all the same, one of them is found. */
export class NumberTable<Row extends Numbered> {
  /** Two spellings of a number may have a row each, from earlier versions. */
  readonly #singles = new Map<string, Row | readonly Row[]>()
  /** Blocks by the length of their numbers. */
  readonly #blocks = new Map<number, Blocks<Row>>()

  /** The row of a number in normal form; a single number counts before a block around it. */
  find(number: string): Row | undefined {
    const key = number.startsWith('+') ? number.slice(1) : number
    const single = this.#singles.get(key)
    if (single !== undefined) return isList(single) ? nearest(single, number) : single
    const blocks = this.#blocks.get(key.length)
    return blocks !== undefined && /^[0-9]+$/.test(key) ? blocks.find(Number(key)) : undefined
  }

  add(row: Row): void {
    const first = numberKey(row.first)
    const last = numberKey(row.last)
    if (first === last) return this.#addSingle(first, row)
    const { length } = first
    if (length > MAX_BLOCK_DIGITS || last.length !== length) return
    const blocks = this.#blocks.get(length) ?? new Blocks()
    this.#blocks.set(length, blocks)
    blocks.add({ first: Number(first), last: Number(last), row })
  }

  delete(row: Row): void {
    const first = numberKey(row.first)
    if (first !== numberKey(row.last)) return this.#blocks.get(first.length)?.delete(row)
    const present = this.#singles.get(first)
    const others = present === undefined || !isList(present) ? [] : present
    const rest = others.filter((each) => each !== row)
    if (rest.length > 0) this.#singles.set(first, rest)
    else if (present === row || others.length > 0) this.#singles.delete(first)
  }

  #addSingle(key: string, row: Row): void {
    const present = this.#singles.get(key)
    if (present === undefined) this.#singles.set(key, row)
    else this.#singles.set(key, [...(isList(present) ? present : [present]), row])
  }
}

const isList = <Row extends Numbered>(rows: Row | readonly Row[]): rows is readonly Row[] =>
  Array.isArray(rows)

/** The same spelling counts before another one, and of two the one that was stored last. */
const nearest = <Row extends Numbered>(rows: readonly Row[], number: string): Row | undefined =>
  rows.findLast((row) => row.first === number) ?? rows.at(-1)

interface Block<Row> {
  readonly first: number
  readonly last: number
  readonly row: Row
}

/**
 * Blocks of one length. What has changed is merged into them before the next look-up, all at once:
 * thousands of blocks may change in one turn of the event loop.
 */
class Blocks<Row> {
  #blocks: readonly Block<Row>[] = []
  /** Where each one begins: a search reads nothing else. */
  #starts = new Float64Array()
  readonly #added = new Map<Row, Block<Row>>()
  readonly #gone = new Set<Row>()

  add(block: Block<Row>): void {
    this.#added.set(block.row, block)
  }

  delete(row: Row): void {
    if (!this.#added.delete(row)) this.#gone.add(row)
  }

  find(value: number): Row | undefined {
    if (this.#added.size > 0 || this.#gone.size > 0) this.#merge()
    const block = this.#blocks[this.#countUpTo(value) - 1]
    return block !== undefined && value <= block.last ? block.row : undefined
  }

  #merge(): void {
    const added = [...this.#added.values()].toSorted((one, other) => one.first - other.first)
    const merged: Block<Row>[] = []
    let next = 0
    for (const block of this.#blocks) {
      if (this.#gone.has(block.row)) continue
      for (let more = added[next]; more && more.first < block.first; more = added[next]) {
        merged.push(more)
        next += 1
      }
      merged.push(block)
    }
    for (const block of added.slice(next)) merged.push(block)
    this.#added.clear()
    this.#gone.clear()
    this.#blocks = merged
    this.#starts = Float64Array.from(merged, ({ first }) => first)
  }

  /** Returns how many blocks begin at `value` or before. */
  #countUpTo(value: number): number {
    const starts = this.#starts
    let from = 0
    let to = starts.length
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((starts[middle] ?? Infinity) <= value) from = middle + 1
      else to = middle
    }
    return from
  }
}
