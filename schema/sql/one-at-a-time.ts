/**
 * Returns a function that runs `work`, once at a time. A call during a run gets the result of the next one, which
 * begins after that call and is shared by all that wait for it.
 */
export function oneAtATime<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  let next: Promise<T> | undefined
  const run = async (): Promise<T> => {
    next = undefined
    running = work()
    try {
      return await running
    } finally {
      running = undefined
    }
  }
  return () => {
    if (running === undefined && next === undefined) return run()
    return (next ??= settled(running).then(run))
  }
}

const settled = async (work: Promise<unknown> | undefined): Promise<void> => {
  await work?.catch(() => undefined)
}
