/** Numbers and blocks by number: one step for a single number, binary searches for a block. */
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
    if (first !== numberKey(row.last))
      return this.#blocks.get(first.length)?.delete(Number(first), row)
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

/** Blocks of one list: a change moves at most so many. */
const LIST = 256

/**
 * Blocks of one length in short lists: to add or to delete one takes about a microsecond, and a
 * look-up after the change of 100,000 of them has nothing to sort.
 */
class Blocks<Row> {
  /** None is empty; in the order of their first numbers, as the blocks in each are. */
  readonly #lists: Block<Row>[][] = []
  /** Where each list begins. */
  readonly #starts: number[] = []

  add(block: Block<Row>): void {
    const at = Math.max(0, countUpTo(this.#starts, block.first, valueOf) - 1)
    const list = this.#lists[at]
    if (list === undefined) {
      this.#lists.push([block])
      this.#starts.push(block.first)
      return
    }
    list.splice(countUpTo(list, block.first, firstOf), 0, block)
    this.#starts[at] = Math.min(this.#starts[at] ?? block.first, block.first)
    if (list.length <= LIST) return
    const rest = list.splice(LIST / 2)
    this.#lists.splice(at + 1, 0, rest)
    this.#starts.splice(at + 1, 0, rest[0]?.first ?? block.first)
  }

  /** From the last list that may have it backwards: several blocks may begin at one number. */
  delete(first: number, row: Row): void {
    for (let at = countUpTo(this.#starts, first, valueOf) - 1; at >= 0; at -= 1) {
      const list = this.#lists[at] ?? []
      const place = list.findIndex((block) => block.row === row)
      if (place !== -1) return this.#remove(at, list, place)
      if ((this.#starts[at] ?? 0) < first) return
    }
  }

  #remove(at: number, list: Block<Row>[], place: number): void {
    list.splice(place, 1)
    const [next] = list
    if (next !== undefined) {
      this.#starts[at] = next.first
      return
    }
    this.#lists.splice(at, 1)
    this.#starts.splice(at, 1)
  }

  find(value: number): Row | undefined {
    const list = this.#lists[countUpTo(this.#starts, value, valueOf) - 1]
    if (list === undefined) return undefined
    const block = list[countUpTo(list, value, firstOf) - 1]
    return block !== undefined && value <= block.last ? block.row : undefined
  }
}

const valueOf = (start: number): number => start
const firstOf = ({ first }: Block<unknown>): number => first

/** Returns how many items of a list in order begin at `value` or before. */
function countUpTo<Item>(
  items: readonly Item[],
  value: number,
  startOf: (item: Item) => number,
): number {
  let from = 0
  let to = items.length
  while (from < to) {
    const middle = (from + to) >>> 1
    const item = items[middle]
    if (item !== undefined && startOf(item) <= value) from = middle + 1
    else to = middle
  }
  return from
}
