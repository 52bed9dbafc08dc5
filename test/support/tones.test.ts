import { expect, test } from 'vitest'
import { shareOf, toneWav, wavSound } from './tones.ts'

test('a tone is found where it is, and nowhere else', () => {
  const sound = wavSound(toneWav(800))
  expect(sound).toMatchObject({ rate: 48_000 })
  expect(shareOf(800, sound)).toBeCloseTo(1, 3)
  expect(shareOf(500, sound)).toBeCloseTo(0, 3)
  expect(shareOf(440, { rate: 8_000, samples: new Int16Array(800) })).toBe(0)
  expect(shareOf(440, { rate: 8_000, samples: new Int16Array(0) })).toBe(0)
})

test('of two tones each has its half', () => {
  const [one, other] = [500, 800].map((hz) => wavSound(toneWav(hz, { rate: 8_000 })))
  const samples = one?.samples.map((sample, at) => sample + (other?.samples[at] ?? 0))
  const both = { rate: 8_000, samples: samples ?? new Int16Array(0) }
  expect(shareOf(500, both)).toBeCloseTo(0.5, 1)
  expect(shareOf(800, both)).toBeCloseTo(0.5, 1)
})
