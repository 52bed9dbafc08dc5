/**
 * Parameters of a header or a URI, by their names in lower case. A list: nearly every value has one or two, which a
 * Map takes five times as much memory for.
 */
interface Param {
  readonly name: string
  readonly value: string
  next: Param | undefined
}

/** Beyond, names are looked up in a set: a message of nothing but parameters must not take seconds. */
const MAX_LISTED = 16

export class Params {
  /** An empty one stood among them (`;;`), or at the end. */
  hasEmpty = false
  #size = 0
  #first: Param | undefined
  #last: Param | undefined
  #names: Set<string> | undefined

  get size(): number {
    return this.#size
  }

  /** False: the name stands there twice, and two readers could act on two different values. */
  add(name: string, value: string): boolean {
    if (this.has(name)) return false
    const param: Param = { name, value, next: undefined }
    if (this.#last === undefined) this.#first = param
    else this.#last.next = param
    this.#last = param
    this.#size += 1
    if (this.#size > MAX_LISTED) (this.#names ??= new Set(this.keys())).add(name)
    return true
  }

  /** '' of a parameter without value. */
  get(name: string): string | undefined {
    for (let param = this.#first; param; param = param.next)
      if (param.name === name) return param.value
    return undefined
  }

  has(name: string): boolean {
    return this.#names?.has(name) ?? this.get(name) !== undefined
  }

  *keys(): Generator<string> {
    for (const [name] of this) yield name
  }

  *[Symbol.iterator](): Generator<readonly [string, string]> {
    for (let param = this.#first; param; param = param.next) yield [param.name, param.value]
  }
}

/** Shared by all values that have none. */
export const noParams = new Params()
