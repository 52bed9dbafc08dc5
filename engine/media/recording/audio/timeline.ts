/** Frames a second. */
export const SAMPLE_RATE = 8_000

/** 0: left, the caller. 1: right, the callee. */
export type Channel = 0 | 1

/** The longest delay of a packet. */
const LATE_FRAMES = 2 * SAMPLE_RATE

const WINDOW_FRAMES = 2 * LATE_FRAMES

/** Timestamps of a sender that differ by more from the time of arrival are ignored. */
const DRIFT_FRAMES = SAMPLE_RATE / 5

/** The most senders of one call. */
const MAX_SENDERS = 64

interface Sender {
  /** The frame of the last timestamp. */
  frame: number
  timestamp: number
}

export interface Piece {
  readonly channel: Channel
  readonly ssrc: number
  readonly timestamp: number
  readonly isMarked: boolean
  /** The frame of its arrival. */
  readonly arrival: number
  readonly payload: Buffer
  readonly decoder: Int16Array
}

/**
 * Puts the audio of two parties at its time, in order and in bounded memory (pure). Packets come
 * late and out of order: the last seconds are held, and passed to `write` when no packet can belong
 * there.
 */
export class Timeline {
  /** The bytes are valid until it returns. */
  readonly #write: (frames: Buffer) => void
  readonly #maxFrames: number
  readonly #window = new Int16Array(WINDOW_FRAMES * 2)
  readonly #senders = new Map<string, Sender>()
  /** The first frame of the window: those before are written. */
  #start = 0
  /** Behind the last frame with audio. */
  #end = 0

  constructor(write: (frames: Buffer) => void, maxFrames: number) {
    this.#write = write
    this.#maxFrames = maxFrames
  }

  add(piece: Piece): void {
    const frame = this.#frameOf(piece)
    const { payload, decoder, channel } = piece
    const end = frame + payload.length
    if (frame < 0 || end > this.#maxFrames) return
    if (end > this.#start + WINDOW_FRAMES) this.#flush(end - LATE_FRAMES)
    for (let index = Math.max(0, this.#start - frame); index < payload.length; index++) {
      const at = (frame + index) % WINDOW_FRAMES
      this.#window[at * 2 + channel] = decoder[payload[index] ?? 0] ?? 0
    }
    this.#end = Math.max(this.#end, end)
  }

  /** Writes the rest. Returns the number of frames: `frames`, or up to the last audio. */
  finish(frames: number | undefined): number {
    const end = Math.min(frames ?? this.#end, this.#maxFrames)
    this.#flush(end)
    return this.#start
  }

  /**
   * RFC 3550 §5.1: the time between packets of one sender is that of their timestamps, not of their
   * arrival, unless the sender has paused or restarted.
   */
  #frameOf({ channel, ssrc, timestamp, isMarked, arrival }: Piece): number {
    const key = `${channel}:${ssrc}`
    const sender = this.#senders.get(key)
    if (sender === undefined) {
      if (this.#senders.size >= MAX_SENDERS) this.#senders.clear()
      this.#senders.set(key, { frame: arrival, timestamp })
      return arrival
    }
    const frame = sender.frame + ((timestamp - sender.timestamp) | 0)
    const late = arrival - frame
    const maxLate = isMarked ? DRIFT_FRAMES : LATE_FRAMES
    sender.frame = late > maxLate || late < -DRIFT_FRAMES ? arrival : frame
    sender.timestamp = timestamp
    return sender.frame
  }

  /** Writes what is before `end`, and clears its place. */
  #flush(end: number): void {
    while (this.#start < end) {
      const from = this.#start % WINDOW_FRAMES
      const count = Math.min(end - this.#start, WINDOW_FRAMES - from)
      const part = this.#window.subarray(from * 2, (from + count) * 2)
      this.#write(Buffer.from(part.buffer, part.byteOffset, part.byteLength))
      part.fill(0)
      this.#start += count
    }
  }
}
