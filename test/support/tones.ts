/** Tones as microphones, and how loud a tone is in what was heard. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

interface Sound {
  readonly rate: number
  /** 16 bits each. */
  readonly samples: Int16Array
}

/** A WAV file with one tone, mono, of whole periods: it may be repeated without a click. */
export function toneWav(hz: number, { rate = 48_000, seconds = 1 } = {}): Buffer {
  const count = rate * seconds
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + 2 * count, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(2 * rate, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36)
  head.writeUInt32LE(2 * count, 40)
  const samples = Int16Array.from(
    { length: count },
    (_, at) => 10_000 * Math.sin((2 * Math.PI * hz * at) / rate),
  )
  return Buffer.concat([head, Buffer.from(samples.buffer)])
}

/**
 * One channel of a WAV file of 16 bits. The lengths in its head are not asked: who writes the file
 * may not have finished.
 */
export function wavSound(file: Buffer, channel = 0): Sound {
  const channels = file.readUInt16LE(22)
  const rate = file.readUInt32LE(24)
  const data = file.indexOf('data') + 8
  const count = Math.floor((file.length - data) / 2 / channels)
  const sampleAt = (at: number): number => file.readInt16LE(data + 2 * (at * channels + channel))
  return { rate, samples: Int16Array.from({ length: count }, (_, at) => sampleAt(at)) }
}

/** The end of a sound. */
const lastOf = ({ rate, samples }: Sound, seconds: number): Sound => ({
  rate,
  samples: samples.subarray(Math.max(0, samples.length - Math.round(rate * seconds))),
})

/** Whole periods of the tones of tests. */
const WINDOW_SECONDS = 0.05

/**
 * How much of a sound is this tone (Goertzel): 0 to 1, where 1 is the tone alone. Silence has none.
 * Each window counts by itself: where a busy machine leaves a packet out, the phase of the tone
 * jumps.
 */
export function shareOf(hz: number, { rate, samples }: Sound): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * hz) / rate)
  const length = Math.round(rate * WINDOW_SECONDS)
  let [ofTone, energy] = [0, 0]
  for (let start = 0; start + length <= samples.length; start += length) {
    const window = samples.subarray(start, start + length)
    let [before, last] = [0, 0]
    for (const sample of window) {
      ;[before, last] = [last, sample + coefficient * last - before]
      energy += sample * sample
    }
    const power = last * last + before * before - coefficient * last * before
    ofTone += (2 * power) / window.length
  }
  // Silence, and noise of a few steps, has no tone.
  return energy <= 100 * samples.length ? 0 : ofTone / energy
}

/** Media comes every 20 ms: a file that grows no more since then is silence. */
const SILENT_MS = 300

/** The last file of baresip's `sndfile` in a folder: the tone's share of the last half second. */
export function shareInLastDump(folder: string, hz: number): number {
  const [newest] = readdirSync(folder)
    .filter((name) => /^dump-.*-dec\.wav$/.test(name))
    .map((name) => join(folder, name))
    .map((file) => ({ file, writtenAt: statSync(file).mtimeMs }))
    .toSorted((one, other) => other.writtenAt - one.writtenAt)
  if (newest === undefined || Date.now() - newest.writtenAt > SILENT_MS) return 0
  return shareOf(hz, lastOf(wavSound(readFileSync(newest.file)), 0.5))
}
