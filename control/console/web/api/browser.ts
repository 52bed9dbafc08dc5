/** The rim of the console: what it needs of the browser, such as its clock and timers. */

export const now = (): number => Date.now()

/** Runs `work` once after `ms`, until the returned function is called. */
export function after(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}

/** Runs `work` every `ms` while the page is visible, until the returned function is called. */
export function every(ms: number, work: () => void): () => void {
  const timer = setInterval(() => {
    if (document.visibilityState === 'visible') work()
  }, ms)
  return () => clearInterval(timer)
}

/** Runs `work` whenever the page is shown again, until the returned function is called. */
export function whenShown(work: () => void): () => void {
  const look = (): void => {
    if (document.visibilityState === 'visible') work()
  }
  document.addEventListener('visibilitychange', look)
  return () => document.removeEventListener('visibilitychange', look)
}

/** Nothing that the page holds is left. */
export const loadAnew = (): void => location.reload()

/** 128 random bits as text. */
export const freshId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')

/**
 * Does `work` whenever the page is visible, and ends it when it is not, until the returned function
 * is called.
 */
export function whileVisible(work: () => () => void): () => void {
  let end: (() => void) | undefined
  const look = (): void => {
    const isVisible = document.visibilityState === 'visible'
    if (isVisible) end ??= work()
    else if (end !== undefined) {
      end()
      end = undefined
    }
  }
  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    document.removeEventListener('visibilitychange', look)
    end?.()
  }
}
