/** Many requests, one after the other, as slowly as the API wants: it counts those of a person. */
import { after } from '../api/browser.ts'
import { type ConsoleAnswer, requestsLeft } from '../api/api.ts'

/** Requests of a minute that are left for the screens. */
const LEFT_FOR_SCREENS = 120
/** With it, fewer are sent than the API takes: the window has room again. */
const PAUSE_MS = 400
/** Whoever stops it waits no longer than this. */
const STEP_MS = 200
/** How long, and how often, one waits for the API to take more. */
const LONGEST_WAIT_MS = 60_000
const MAX_WAITS = 15

interface PacedOptions {
  readonly isStopped: () => boolean
  /** Called after each. */
  readonly onProgress: (done: number) => void
  /** The API takes no more until then: milliseconds from now; 0: it goes on. */
  readonly onWait?: (ms: number) => void
}

/** The answer for each of `items` that was tried: none after the end of the session. */
export async function paced<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<ConsoleAnswer<unknown>>,
  options: PacedOptions,
): Promise<Map<Item, ConsoleAnswer<unknown>>> {
  const { isStopped, onProgress } = options
  const answers = new Map<Item, ConsoleAnswer<unknown>>()
  for (const item of items) {
    if (requestsLeft() < LEFT_FOR_SCREENS) await pause(PAUSE_MS, isStopped)
    if (isStopped()) break
    const answer = await patiently(() => work(item), options)
    answers.set(item, answer)
    if (answer.kind === 'signed-out') break
    onProgress(answers.size)
  }
  return answers
}

async function patiently(
  work: () => Promise<ConsoleAnswer<unknown>>,
  { isStopped, onWait }: PacedOptions,
): Promise<ConsoleAnswer<unknown>> {
  let answer = await work()
  for (let waits = 0; waits < MAX_WAITS && !isStopped(); waits += 1) {
    const ms = answer.kind === 'failed' ? answer.retryAfterMs : undefined
    if (ms === undefined) break
    onWait?.(ms)
    await pause(Math.min(ms, LONGEST_WAIT_MS), isStopped)
    onWait?.(0)
    if (!isStopped()) answer = await work()
  }
  return answer
}

async function pause(ms: number, isStopped: () => boolean): Promise<void> {
  for (let left = ms; left > 0 && !isStopped(); left -= STEP_MS)
    await new Promise<void>((resolve) => {
      after(Math.min(left, STEP_MS), resolve)
    })
}
