import { expect, test } from 'vitest'
import { BYTES_OF_TURN, pacedPieces } from '../../../control/reports/paced-pieces.ts'

/** Pieces in which each byte says where it was. */
async function* piecesOf(lengths: readonly number[], closed: () => void = () => undefined) {
  let at = 0
  try {
    for (const length of lengths) yield Uint8Array.from({ length }, () => (at++ * 7) % 251)
  } finally {
    closed()
  }
}

/** A loop whose turns take so long, and what is asked of it. */
function loop(turnMs: number) {
  const asked: string[] = []
  let now = 0
  return {
    asked,
    now: () => now,
    turn: () => {
      now += turnMs
      asked.push('turn')
      return Promise.resolve()
    },
    pause: (ms: number) => {
      now += ms
      asked.push(`pause ${ms}`)
      return Promise.resolve()
    },
  }
}

/** Notes each part in the list of the loop. */
async function read(lengths: readonly number[], time: ReturnType<typeof loop>) {
  const parts: Uint8Array[] = []
  for await (const part of pacedPieces(piecesOf(lengths), time)) {
    parts.push(part)
    time.asked.push(`${part.length} bytes`)
  }
  return parts
}

test('a report is passed on whole, at most 64 kB in a turn of the loop', async () => {
  const time = loop(0)
  const lengths = [300_000, 40_000, 20_000, 1, 200_000]
  const parts = await read(lengths, time)
  const whole: Uint8Array[] = []
  for await (const piece of piecesOf(lengths)) whole.push(piece)
  expect(Buffer.concat(parts).equals(Buffer.concat(whole))).toBe(true)
  const turns = time.asked.join(' ').split('turn')
  const bytes = turns.map((turn) =>
    [...turn.matchAll(/(\d+) bytes/g)].reduce((sum, [, each]) => sum + Number(each), 0),
  )
  expect(bytes.reduce((sum, each) => sum + each, 0)).toBe(560_001)
  expect(Math.max(...bytes)).toBeLessThanOrEqual(BYTES_OF_TURN)
  expect(time.asked.filter((each) => each.startsWith('pause'))).toEqual([])
})

test('a short one waits for nothing, however late the loop is', async () => {
  const time = loop(30)
  await read([40_000, 20_000], time)
  expect(time.asked).toEqual(['40000 bytes', '20000 bytes'])
})

test('it rests ten times as long as a turn has taken, and 50 ms at most', async () => {
  const lengths = [2 * BYTES_OF_TURN]
  const [late, later] = [loop(3), loop(200)]
  await read(lengths, late)
  expect(late.asked).toEqual(['65536 bytes', 'turn', 'pause 30', '65536 bytes'])
  await read(lengths, later)
  expect(later.asked).toContain('pause 50')
})

test('a reader that leaves closes the report', async () => {
  let isClosed = false
  const parts = pacedPieces(
    piecesOf([500_000, 500_000], () => (isClosed = true)),
    loop(0),
  )
  await parts.next()
  await parts.next()
  await parts.return()
  expect(isClosed).toBe(true)
})
