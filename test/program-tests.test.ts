/** Tests that start the program run where they show something. */
import { matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import { hasPostgres } from './support/postgres.ts'
import { onBothDatabases, programTests } from './support/program-tests.ts'
import config from '../vitest.config.ts'

interface Project {
  readonly name: string
  readonly include: readonly string[]
  readonly env?: { readonly TEST_DATABASE?: string }
}

const projects = (config.test?.projects ?? []).map(
  (each) => (each as { readonly test: Project }).test,
)

const runs = ({ include }: Project, file: string): boolean =>
  include.some((pattern) => !pattern.startsWith('!') && matchesGlob(file, pattern)) &&
  !include.some((pattern) => pattern.startsWith('!') && matchesGlob(file, pattern.slice(1)))

/** The databases on which a file runs, each as often as it does so. */
const databasesOf = (file: string): string[] =>
  projects
    .filter((project) => runs(project, file))
    .map(({ env }) => env?.TEST_DATABASE ?? 'sqlite')
    .toSorted()

test.runIf(hasPostgres)(
  'each test that starts the program runs once on SQLite, and those of program-tests.ts once more on PostgreSQL',
  () => {
    const complaints = programTests
      .map((file) => ({
        file,
        found: databasesOf(file),
        wanted: onBothDatabases[file] === undefined ? ['sqlite'] : ['postgres', 'sqlite'],
      }))
      .filter(({ found, wanted }) => found.join() !== wanted.join())
    expect(complaints).toEqual([])
  },
)

test('what is named with a reason starts the program', () => {
  expect(Object.keys(onBothDatabases).filter((file) => !programTests.includes(file))).toEqual([])
})

test('the files that start the program are found', () => {
  expect(programTests.length).toBeGreaterThan(40)
  for (const file of ['test/process/guide.test.ts', 'test/sipp/examples.test.ts'])
    expect(programTests).toContain(file)
})
