import { defineConfig } from 'vitest/config'

const processTests = [
  'process',
  'sipp',
  'baresip',
  'kamailio',
  'sipsak',
  'sipvicious',
  'tls',
  'webphone',
  'conformance',
].map((folder) => `test/${folder}/**/*.test.ts`)

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: processTests,
          // Modules are loaded once per worker: the tests share no mutable module state.
          pool: 'forks',
          isolate: false,
        },
      },
      {
        test: {
          name: 'process',
          include: processTests,
          pool: 'forks',
          isolate: true,
          // One at a time: these measure time and use real ports.
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
})
