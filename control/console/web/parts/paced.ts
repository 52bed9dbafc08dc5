/** Many requests, one after the other, as slowly as the API wants: it counts those of a person. */
import { after } from '../api/browser.ts'
import type { ConsoleAnswer } from '../api/api.ts'

/** These come without a pause; with the pauses after them, some are left for the screens. */
const WITHOUT_PAUSE = 60
const PAUSE_MS = 140
/** How long, and how often, one waits for the API to take more. */
const PATIENCE_MS = 5_000
const MAX_WAITS = 15

interface PacedOptions {
  readonly isStopped: () => boolean
  /** Called after each. */
  readonly onProgress: (done: number) => void
}

/** The answer for each of `items` that was tried: none after the end of the session. */
export async function paced<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<ConsoleAnswer<unknown>>,
  { isStopped, onProgress }: PacedOptions,
): Promise<Map<Item, ConsoleAnswer<unknown>>> {
  const answers = new Map<Item, ConsoleAnswer<unknown>>()
  for (const [index, item] of items.entries()) {
    if (isStopped()) break
    if (index >= WITHOUT_PAUSE) await pause(PAUSE_MS)
    const answer = await patiently(() => work(item), isStopped)
    answers.set(item, answer)
    if (answer.kind === 'signed-out') break
    onProgress(answers.size)
  }
  return answers
}

async function patiently(
  work: () => Promise<ConsoleAnswer<unknown>>,
  isStopped: () => boolean,
): Promise<ConsoleAnswer<unknown>> {
  let answer = await work()
  for (let waits = 0; waits < MAX_WAITS && isTooOften(answer) && !isStopped(); waits += 1) {
    await pause(PATIENCE_MS)
    answer = await work()
  }
  return answer
}

const isTooOften = (answer: ConsoleAnswer<unknown>): boolean =>
  answer.kind === 'failed' && answer.code === 'rate_limited'

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    after(ms, resolve)
  })
