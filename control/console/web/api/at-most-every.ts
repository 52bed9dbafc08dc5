/** Work that is asked for more often than it is worth doing. */

/** Runs `work` once after `ms`, until the returned function is called. */
type After = (ms: number, work: () => void) => () => void

/**
 * Does `work` when it is asked to, and at most every `ms`: what is asked for sooner is done once,
 * at the end of that time. `end`: what is due is not done any more.
 */
export function atMostEvery(ms: number, after: After, work: () => void) {
  let cancel: (() => void) | undefined
  let isAsked = false
  const rest = (): void => {
    cancel = undefined
    if (isAsked) run()
  }
  const run = (): void => {
    isAsked = false
    cancel = after(ms, rest)
    work()
  }
  return {
    ask: (): void => {
      if (cancel === undefined) run()
      else isAsked = true
    },
    end: (): void => cancel?.(),
  }
}
