/**
 * A reporter for `test/run.mjs`: how far a run is, and at its end how much ran in each project, and
 * how long.
 */
import { relative } from 'node:path'
import type { Reporter, TestCase, TestModule, TestSpecification } from 'vitest/node'

interface ProjectTotals {
  readonly files: number
  readonly tests: number
  readonly durationMs: number
}

export class RunSummary implements Reporter {
  passed = 0
  readonly failed: string[] = []
  readonly skipped: string[] = []
  /** Tests that failed before they passed, with the reason. */
  readonly unstable: string[] = []
  #files = 0
  #filesDone = 0
  readonly #projects = new Map<string, ProjectTotals>()
  readonly #slowest: { readonly name: string; readonly durationMs: number }[] = []
  readonly #beganMs = Date.now()
  #ticks: NodeJS.Timeout | undefined
  readonly #print: (line: string) => void

  constructor(print: (line: string) => void) {
    this.#print = print
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#files = specifications.length
    this.#ticks = setInterval(() => this.#printProgress(), 30_000)
  }

  onTestModuleEnd(testModule: TestModule): void {
    const file = relative(process.cwd(), testModule.moduleId)
    const project = testModule.project.name
    const { duration: durationMs } = testModule.diagnostic()
    let [passed, failed] = [0, 0]
    for (const test of testModule.children.allTests()) {
      const { state } = test.result()
      const name = `${file}: ${test.fullName}`
      if (test.diagnostic()?.flaky === true) this.unstable.push(`${name}: ${reasonOf(test)}`)
      if (state === 'passed') passed++
      else if (state === 'failed') failed = this.failed.push(name)
      else this.skipped.push(name)
    }
    // A file that could not be loaded fails without a failed test.
    if (!testModule.ok() && failed === 0) this.failed.push(file)
    const before = this.#projects.get(project) ?? { files: 0, tests: 0, durationMs: 0 }
    this.#projects.set(project, {
      files: before.files + 1,
      tests: before.tests + passed,
      durationMs: before.durationMs + durationMs,
    })
    this.#slowest.push({ name: `${file} (${project})`, durationMs })
    this.#filesDone++
    this.passed += passed
  }

  onTestRunEnd(): void {
    clearInterval(this.#ticks)
  }

  printTotals(): void {
    this.#print(`\nran in ${this.#elapsed()}:`)
    for (const [project, { files, tests, durationMs }] of this.#projects)
      this.#print(
        `  ${project}: ${tests} tests in ${files} files, ${inSeconds(durationMs)} of work`,
      )
    this.#print('slowest files:')
    const slowest = this.#slowest.toSorted((one, other) => other.durationMs - one.durationMs)
    for (const { name, durationMs } of slowest.slice(0, 10))
      this.#print(`  ${inSeconds(durationMs)} ${name}`)
  }

  #printProgress(): void {
    const failures = this.failed.length === 0 ? '' : `, ${this.failed.length} failed`
    this.#print(`== ${this.#filesDone} of ${this.#files} files in ${this.#elapsed()}${failures}`)
  }

  #elapsed(): string {
    return inSeconds(Date.now() - this.#beganMs)
  }
}

/** The first line of what its first attempt complained of. */
const reasonOf = (test: TestCase): string =>
  test.result().errors?.[0]?.message.split('\n', 1)[0] ?? 'no error is known'

const inSeconds = (durationMs: number): string => `${Math.round(durationMs / 1000)} s`
