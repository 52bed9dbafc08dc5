/** How long to wait after a 491 before the same is tried again: RFC 3261 §14.1. */
import type { Dialog } from '../../dialog/dialog.ts'
import { hashOf } from '../hash.ts'
import type { Stack } from '../stack.ts'

/** Milliseconds, in steps of 10. Whoever made the Call-ID waits longer than the other can. */
export function glareBackOffMs(stack: Stack, dialog: Dialog): number {
  const [least, steps] = dialog.role === 'uac' ? ([2_100, 191] as const) : ([0, 201] as const)
  return least + (hashOf(stack.options.token()) % steps) * 10
}
