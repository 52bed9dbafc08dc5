/** `tollgate/testing`: the test kit with clock, timers and randomness of the process. */
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { openTestKit as published } from './published.ts'
import { openKit } from './test-kit.ts'

export type * from './published.ts'

export const openTestKit: typeof published = (options) =>
  openKit(options, {
    wallNow: () => Date.now(),
    steadyNow: () => performance.now(),
    pause: (milliseconds) => pause(milliseconds, undefined, { ref: false }),
    randomBytes,
  })
