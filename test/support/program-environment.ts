import { resolve } from 'node:path'

/**
 * The environment that the built program gets of this process, and V8's code of it: to compile it
 * takes 0.15 s of a core at each start.
 */
export const programEnvironment = {
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: resolve('node_modules/.compile-cache'),
}

/**
 * With them, and the allocator's setting, the program does not start itself anew
 * (`engine/launch.ts`): one start of Node less.
 */
export const asRestarted = {
  flags: [
    '--min-semi-space-size=16',
    '--max-semi-space-size=32',
    '--no-allocation-site-pretenuring',
    '--no-parallel-scavenge',
    '--heap-growing-percent=100',
  ],
  environment: { MALLOC_ARENA_MAX: '2' },
} as const
