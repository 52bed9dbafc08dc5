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
    const present = this.#singles.get(first)
    const others = present === undefined || !isList(present) ? [] : present
    const rest = others.filter((each) => each !== row)
    if (rest.length > 0) this.#singles.set(first, rest)
    else if (present === row || others.length > 0) this.#singles.delete(first)
    this.#blocks.get(first.length)?.delete(row)
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

/** Blocks of one length. They are sorted before the first look-up after a change. */
class Blocks<Row> {
  readonly #blocks: Block<Row>[] = []
  /** Where each one begins: a search reads nothing else. Empty: they have to be sorted. */
  #starts = new Float64Array()

  add(block: Block<Row>): void {
    this.#blocks.push(block)
    this.#starts = new Float64Array()
  }

  delete(row: Row): void {
    const index = this.#blocks.findIndex((block) => block.row === row)
    if (index === -1) return
    this.#blocks.splice(index, 1)
    this.#starts = new Float64Array()
  }

  find(value: number): Row | undefined {
    if (this.#starts.length !== this.#blocks.length) this.#sort()
    const block = this.#blocks[this.#countUpTo(value) - 1]
    return block !== undefined && value <= block.last ? block.row : undefined
  }

  #sort(): void {
    this.#blocks.sort((one, other) => one.first - other.first)
    this.#starts = Float64Array.from(this.#blocks, ({ first }) => first)
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
