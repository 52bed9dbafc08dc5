import { decodeMessage } from './message.ts'
import { parseContentLength } from './fields.ts'

/**
 * Messages from a stream. After `unframeable` nothing more comes: the connection has to be closed.
 */
export type Frame =
  /** One whole message as text. */
  | { readonly kind: 'message'; readonly text: string }
  /** A keep-alive of two line breaks; it wants one line break back (RFC 5626 §4.4.1). */
  | { readonly kind: 'ping' }
  | {
      readonly kind: 'unframeable'
      readonly reason: Unframeable
      /** The header part, as a message without body; '' when its end has not been seen. */
      readonly head: string
    }

export type Unframeable = 'too-large' | 'no-content-length' | 'bad-content-length'

export interface FramerLimits {
  /** Largest message, header part and body together. */
  readonly maxBytes: number
}

/** Limit of a message on a stream, as of a UDP datagram. */
export const maxMessageBytes = 65_536

const defaultLimits: FramerLimits = { maxBytes: maxMessageBytes }

const carriageReturn = 0x0d
const lineFeed = 0x0a
const endOfHeader = Buffer.from('\r\n\r\n')
const endOfBareHeader = Buffer.from('\n\n')
const nothing = Buffer.alloc(0)

/**
 * Cuts a byte stream into SIP messages by Content-Length (RFC 3261 §18.3). Each byte is searched
 * once and copied at most a fixed number of times however the stream is cut, and no more than one
 * message is ever held.
 */
export class StreamFramer {
  readonly #maxBytes: number
  /** Holds `#held` bytes of an unfinished message; grows by doubling up to the limit. */
  #buffer: Buffer = nothing
  #held = 0
  /** Bytes of the unfinished message that hold no end of header. */
  #searched = 0
  /** Among them is a carriage return: lines of this message do not end with bare line feeds. */
  #hasCarriageReturn = false
  /** Size of the unfinished message, once its header part is complete. */
  #size: number | undefined
  /** Bytes of a possible ping seen since the last message: 0 to 3. */
  #blank = 0
  #isBroken = false

  constructor(limits: FramerLimits = defaultLimits) {
    this.#maxBytes = limits.maxBytes
  }

  /** A message has begun and not ended. */
  get isIncomplete(): boolean {
    return this.#held > 0
  }

  /** Takes bytes in whatever pieces the socket delivers; answers everything that they complete. */
  receive(bytes: Buffer): readonly Frame[] {
    const frames: Frame[] = []
    let rest = bytes
    while (rest.length > 0 && !this.#isBroken) {
      if (this.#held === 0) rest = this.#skipLineBreaks(rest, frames)
      if (rest.length > 0) rest = this.#take(rest, frames)
    }
    return frames
  }

  /** RFC 3261 §7.5: line breaks between messages mean nothing, except two in a row. */
  #skipLineBreaks(bytes: Buffer, frames: Frame[]): Buffer {
    let at = 0
    for (; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte !== carriageReturn && byte !== lineFeed) break
      const isExpected = byte === endOfHeader[this.#blank]
      this.#blank = isExpected ? this.#blank + 1 : byte === carriageReturn ? 1 : 0
      if (this.#blank < endOfHeader.length) continue
      this.#blank = 0
      frames.push({ kind: 'ping' })
    }
    if (at < bytes.length) this.#blank = 0
    return bytes.subarray(at)
  }

  /** Continues or begins a message; answers the bytes that belong to the next one. */
  #take(bytes: Buffer, frames: Frame[]): Buffer {
    const before = this.#held
    const view = before === 0 ? bytes : this.#append(bytes)
    this.#size ??= this.#findSize(view, frames)
    if (this.#isBroken) return nothing
    if (this.#size === undefined || view.length < this.#size) {
      if (before === 0) this.#append(bytes)
      return nothing
    }
    const size = this.#size
    frames.push({ kind: 'message', text: decodeMessage(view.subarray(0, size)) })
    this.#forget()
    return bytes.subarray(size - before)
  }

  /** Buffers bytes, not more than the message can need; returns all buffered bytes. */
  #append(bytes: Buffer): Buffer {
    const wanted = (this.#size ?? this.#maxBytes) - this.#held
    const held = this.#held + Math.min(bytes.length, wanted)
    if (held > this.#buffer.length) {
      const capacity = Math.min(Math.max(held, 2 * this.#buffer.length), this.#maxBytes)
      const larger = Buffer.allocUnsafeSlow(capacity)
      this.#buffer.copy(larger, 0, 0, this.#held)
      this.#buffer = larger
    }
    bytes.copy(this.#buffer, this.#held, 0, wanted)
    this.#held = held
    return this.#buffer.subarray(0, held)
  }

  /** Size of the message that begins here, once its header part is complete. */
  #findSize(view: Buffer, frames: Frame[]): number | undefined {
    const bareEnd = this.#findBareEnd(view)
    const isBare = bareEnd !== -1
    const end = isBare ? bareEnd : view.indexOf(endOfHeader, Math.max(0, this.#searched - 3))
    this.#searched = view.length
    if (end === -1)
      return view.length < this.#maxBytes ? undefined : this.#fail('too-large', frames)
    const text = view.toString('latin1', 0, end)
    const length = contentLength(isBare ? text.replaceAll('\n', '\r\n') : text)
    const head = view.subarray(0, end + (isBare ? endOfBareHeader : endOfHeader).length)
    if (typeof length === 'string') return this.#fail(length, frames, head)
    const size = head.length + length
    return size <= this.#maxBytes ? size : this.#fail('too-large', frames, head)
  }

  /**
   * End of a header part that has no carriage return at all. Where there is one, two line feeds end
   * nothing: who reads strictly on the way to us would see the message end elsewhere.
   */
  #findBareEnd(view: Buffer): number {
    if (this.#hasCarriageReturn) return -1
    const first = view.indexOf(carriageReturn, this.#searched)
    this.#hasCarriageReturn = first !== -1
    const bare = this.#hasCarriageReturn ? view.subarray(0, first) : view
    return bare.indexOf(endOfBareHeader, Math.max(0, this.#searched - 1))
  }

  #fail(reason: Unframeable, frames: Frame[], head: Buffer = nothing): undefined {
    frames.push({ kind: 'unframeable', reason, head: decodeMessage(head) })
    this.#forget()
    this.#isBroken = true
  }

  #forget(): void {
    this.#buffer = nothing
    this.#held = 0
    this.#searched = 0
    this.#hasCarriageReturn = false
    this.#size = undefined
  }
}

const contentLengthLine = /\r\n(?:content-length|l)[ \t]*:([^\r\n]*(?:\r\n[ \t][^\r\n]*)*)/gi

/**
 * RFC 3261 §20.14 over a header part; several must agree, or a receiver behind us could cut
 * elsewhere.
 */
function contentLength(headerPart: string): number | Unframeable {
  let length: number | undefined
  for (const [, value = ''] of headerPart.matchAll(contentLengthLine)) {
    const bytes = parseContentLength(value.trim())
    if (bytes === undefined || (length ?? bytes) !== bytes) return 'bad-content-length'
    length = bytes
  }
  return length ?? 'no-content-length'
}
