/**
 * Numbers of one column of many records as bytes, as few as they need: with less than 256
 * different whole numbers in a row, one for each. NaN stands for null.
 */

/** Bytes of a number; 0: all are the same, and there are no bytes. */
type Width = 0 | 1 | 2 | 4 | 8

export interface ColumnHead {
  readonly width: Width
  /** Added to each stored number. */
  readonly base: number
  /** Each is divided by it. */
  readonly scale: number
  /** Null: there is no value. */
  readonly min: number | null
  readonly max: number | null
  readonly hasNull: boolean
}

export interface EncodedColumn {
  readonly head: ColumnHead
  readonly bytes: Buffer
}

const scales = [1, 100, 1_000]
const nulls: Readonly<Record<number, number>> = { 1: 0xff, 2: 0xff_ff, 4: 0xff_ff_ff_ff }

export function encodeColumn(values: Float64Array): EncodedColumn {
  let [min, max, hasNull] = [Infinity, -Infinity, false]
  for (const value of values)
    if (Number.isNaN(value)) hasNull = true
    else {
      if (value < min) min = value
      if (value > max) max = value
    }
  if (min > max) return { head: headOf(0, NaN, 1, null, null, hasNull), bytes: Buffer.alloc(0) }
  if (min === max && !hasNull)
    return { head: headOf(0, min, 1, min, max, false), bytes: Buffer.alloc(0) }
  const scale = scales.find((each) => isWhole(values, each))
  const width = scale === undefined ? 8 : widthOf(Math.round((max - min) * scale))
  if (scale === undefined || width === 8)
    return { head: headOf(8, 0, 1, min, max, hasNull), bytes: bytesOf(values) }
  const base = Math.round(min * scale)
  const stored = arrayOf(width, values.length)
  const none = nulls[width] ?? 0
  for (const [index, value] of values.entries())
    stored[index] = Number.isNaN(value) ? none : Math.round(value * scale) - base
  return { head: headOf(width, base, scale, min, max, hasNull), bytes: bytesOf(stored) }
}

const headOf = (
  width: Width,
  base: number,
  scale: number,
  min: number | null,
  max: number | null,
  hasNull: boolean,
): ColumnHead => ({ width, base, scale, min, max, hasNull })

/** Whether each is exactly a whole number divided by `scale`. */
function isWhole(values: Float64Array, scale: number): boolean {
  for (const value of values) {
    if (Number.isNaN(value)) continue
    const whole = Math.round(value * scale)
    if (!Number.isSafeInteger(whole) || whole / scale !== value) return false
  }
  return true
}

function widthOf(range: number): Width {
  const width = ([1, 2, 4] as const).find((each) => range < (nulls[each] ?? 0))
  return width ?? 8
}

const arrayOf = (width: Width, length: number) =>
  width === 1
    ? new Uint8Array(length)
    : width === 2
      ? new Uint16Array(length)
      : new Uint32Array(length)

const bytesOf = ({ buffer, byteOffset, byteLength }: NodeJS.TypedArray): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

interface WantedNumbers {
  readonly count: number
  /** Undefined: all of them. */
  readonly rows?: Int32Array | undefined
}

/** Writes the numbers into `into`. */
export function decodeColumn(
  { width, base, scale, min }: ColumnHead,
  bytes: Buffer | undefined,
  { count, rows }: WantedNumbers,
  into: Float64Array,
): void {
  // A stored head is JSON, which has no NaN: its base says nothing then.
  if (width === 0 || bytes === undefined) return void into.fill(min === null ? NaN : base, 0, count)
  const from = isAligned(bytes, width) ? bytes : Buffer.from(Uint8Array.from(bytes).buffer)
  const stored = storedIn(width, from, count)
  if (rows !== undefined) pick(stored, rows, { base, scale, none: nulls[width] }, into)
  else if (stored instanceof Float64Array) into.set(stored)
  else if (stored instanceof Uint8Array) spread8(stored, base, scale, into)
  else if (stored instanceof Uint16Array) spread16(stored, base, scale, into)
  else spread32(stored, base, scale, into)
}

function storedIn(width: Exclude<Width, 0>, { buffer, byteOffset }: Buffer, count: number) {
  if (width === 1) return new Uint8Array(buffer, byteOffset, count)
  if (width === 2) return new Uint16Array(buffer, byteOffset, count)
  if (width === 4) return new Uint32Array(buffer, byteOffset, count)
  return new Float64Array(buffer, byteOffset, count)
}

const isAligned = ({ byteOffset }: Buffer, width: Width): boolean => byteOffset % width === 0

function pick(
  from: Uint8Array | Uint16Array | Uint32Array | Float64Array,
  rows: Int32Array,
  {
    base,
    scale,
    none,
  }: { readonly base: number; readonly scale: number; readonly none: number | undefined },
  into: Float64Array,
): void {
  for (const row of rows) {
    const stored = from[row] ?? NaN
    into[row] = stored === none ? NaN : (base + stored) / scale
  }
}

/** One function for each kind of array: each is compiled for its own. */
function spread8(from: Uint8Array, base: number, scale: number, into: Float64Array): void {
  for (let at = 0; at < from.length; at += 1) {
    const stored = from[at] ?? 0
    into[at] = stored === 0xff ? NaN : scale === 1 ? base + stored : (base + stored) / scale
  }
}

function spread16(from: Uint16Array, base: number, scale: number, into: Float64Array): void {
  for (let at = 0; at < from.length; at += 1) {
    const stored = from[at] ?? 0
    into[at] = stored === 0xff_ff ? NaN : scale === 1 ? base + stored : (base + stored) / scale
  }
}

function spread32(from: Uint32Array, base: number, scale: number, into: Float64Array): void {
  for (let at = 0; at < from.length; at += 1) {
    const stored = from[at] ?? 0
    into[at] =
      stored === 0xff_ff_ff_ff ? NaN : scale === 1 ? base + stored : (base + stored) / scale
  }
}
