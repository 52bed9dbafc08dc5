import { existsSync, globSync, readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'
import { onBothDatabases } from './test/support/program-tests.ts'
import { sameOnPostgres, sqliteFiles } from './test/support/sqlite-only.ts'

const inFolders = (...folders: readonly string[]): string[] =>
  folders.map((folder) => `test/${folder}/**/*.test.ts`)

/** In `include`: an `exclude` of a project would replace those that `npm test` gives. */
const not = (...groups: readonly (readonly string[])[]): string[] =>
  groups.flat().map((pattern) => `!${pattern}`)

/** These measure time, or what the machine does. */
const measuringTests = ['attack', 'nodes'].map((name) => `test/process/${name}.test.ts`)
/** They wait more than they work, so several at a time. */
const patientTests = inFolders(
  'baresip',
  'kamailio',
  'sipp',
  'sipvicious',
  'webphone',
  'conformance',
  'rtpengine',
  'tls',
  'console',
  'process',
)
/**
 * Those of them that take a browser, a media relay, an installation or several starts: `npm test`
 * leaves it to `--all`.
 */
const thoroughTests = [
  ...inFolders('sipvicious', 'webphone', 'conformance', 'rtpengine', 'console'),
  'test/baresip/nodes.test.ts',
  'test/process/{build,container,demo,drachtio-server,outlive,service-manager}.test.ts',
  'test/process/{sip-server-package,package,socket-activation,start}.test.ts',
]
/** Without sockets, in virtual time: nothing in them waits. */
const virtualTests = inFolders('engine/call')

/** The tests of the control API and of charging that open a database by a rig of both kinds. */
const databaseTests = globSync('test/{control,engine/charging}/**/*.test.ts').filter((file) =>
  /\b(?:open(?:Control|Resources|ToolRig|ReportRig|ReratingRig|ProposalRig|(?:Test)?Store)|customerWith|conserved)\b/.test(
    readFileSync(file, 'utf8'),
  ),
)

/** Those of the registrar that are not written for each database. */
const registrarTests = ['test/engine/registrar/{clock-jumps,closed-connections}.test.ts']

/** Those of the built program to which the database makes a difference. */
const repeatedTests = Object.keys(onBothDatabases)

/** Vitest leaves one of them to itself, which is half of two; it needs a tenth of one. */
const allCores = '100%'

/**
 * No test may fail because the machine stood still for a moment; only tests that fail wait so long.
 */
const patience = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 20_000 } },
  /** Real time on a shared machine: a second failure counts. Each first one is named (D540). */
  retry: process.env['CI'] === 'true' ? 1 : 0,
}

/** As `hasPostgres` of `test/support/postgres.ts`. */
const hasPostgres =
  process.env['TEST_DATABASE_URL'] !== undefined ||
  process.env['CI'] === 'true' ||
  existsSync('/usr/lib/postgresql')

/** The same tests again, on PostgreSQL. */
const onPostgres = { TEST_DATABASE: 'postgres' }
const postgresProject = {
  test: {
    name: 'postgres',
    include: [
      ...databaseTests,
      ...registrarTests,
      ...not(Object.keys(sqliteFiles), sameOnPostgres),
    ],
    setupFiles: ['test/support/property-seed.ts', 'test/support/opened-rigs.ts'],
    env: onPostgres,
    pool: 'forks' as const,
    isolate: false,
    maxWorkers: allCores,
    ...patience,
  },
}

/** For tests that wait more than they work. */
const waiting = {
  pool: 'forks' as const,
  isolate: false,
  maxWorkers: 4,
  sequence: { groupOrder: 1 },
  ...patience,
  // Some start the program seven times.
  testTimeout: 180_000,
}

/** One at a time. */
const measuring = {
  pool: 'forks' as const,
  isolate: true,
  maxWorkers: 1,
  sequence: { groupOrder: 2 },
  ...patience,
}

const postgresProcessProject = {
  test: {
    ...waiting,
    name: 'postgres-process',
    include: repeatedTests,
    env: onPostgres,
  },
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts', ...not(patientTests, virtualTests)],
          setupFiles: 'test/support/property-seed.ts',
          // Modules are loaded once per worker: the tests share no mutable module state.
          pool: 'forks',
          isolate: false,
          maxWorkers: allCores,
          ...patience,
        },
      },
      {
        test: {
          name: 'virtual',
          include: virtualTests,
          setupFiles: ['test/support/property-seed.ts', 'test/support/no-sockets.ts'],
          pool: 'forks',
          isolate: false,
          maxWorkers: allCores,
          testTimeout: 5_000,
          hookTimeout: 5_000,
        },
      },
      ...(hasPostgres ? [postgresProject, postgresProcessProject] : []),
      {
        test: {
          ...waiting,
          name: 'patient',
          include: [...patientTests, ...not(measuringTests, thoroughTests)],
        },
      },
      { test: { ...waiting, name: 'thorough', include: thoroughTests } },
      { test: { ...measuring, name: 'measuring', include: measuringTests } },
    ],
  },
})
