/**
 * `npm test`: what a developer needs, on SQLite. `npm test -- --all`, which `.ci/run` takes:
 * PostgreSQL, browsers, media and what measures, too. Further arguments are those of vitest: files,
 * `-t name`, `--project name`.
 *
 * As root, in a container or CI, it installs the peer programs that these suites drive; elsewhere
 * it names the command that installs them. What cannot run is listed by name, and fails with
 * CI=true. With CI=true a test that fails runs once more, and is named. It prints how far it is, at
 * the end what ran and how long, and last the line `N passed, N failed`.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { join } from 'node:path'
import { parseCLI, startVitest } from 'vitest/node'
import { RunSummary } from './support/run-summary.ts'

/** The projects of vitest.config.ts that `npm test` leaves to `--all`. */
const onlyWithAll = ['thorough', 'postgres', 'postgres-process', 'measuring']

/**
 * Run once more, on PostgreSQL, by the projects of vitest.config.ts whose names begin with
 * postgres.
 */
const repeatedFolders = ['control', 'engine/charging', 'engine/registrar', 'process', 'sipp'].map(
  (folder) => under(`test/${folder}`),
)

/**
 * Programs that are not from npm, the Debian packages that have them, and the test files that need
 * them.
 */
const peers = [
  { program: 'sipp', debianPackage: 'sip-tester', needs: under('test/sipp') },
  {
    program: 'baresip',
    debianPackage: 'baresip-core',
    needs: (file) => under('test/baresip')(file) || under('test/webphone')(file),
  },
  {
    program: 'chromium',
    debianPackage: 'chromium',
    needs: (file) =>
      /from '.*\/(?:browser-phone|console-browser)\.ts'$/m.test(readFileSync(file, 'utf8')),
  },
  {
    program: 'rtpengine',
    debianPackage: 'rtpengine-daemon',
    needs: (file) => /from '.*\/rtpengine\.ts'$/m.test(readFileSync(file, 'utf8')),
  },
  { program: 'kamailio', debianPackage: 'kamailio', needs: under('test/kamailio') },
  { program: 'svcrack', debianPackage: 'sipvicious', needs: under('test/sipvicious') },
  {
    program: 'openssl',
    debianPackage: 'openssl',
    needs: (file) => /from '.*\/certificates\.ts'$/m.test(readFileSync(file, 'utf8')),
  },
  {
    program: 'initdb',
    debianPackage: 'postgresql',
    needs: (file) =>
      process.env.TEST_DATABASE_URL === undefined &&
      /from '.*\/postgres\.ts'$/m.test(readFileSync(file, 'utf8')),
    repeats: (file) =>
      process.env.TEST_DATABASE_URL === undefined && repeatedFolders.some((part) => part(file)),
  },
  {
    program: 'tshark',
    debianPackage: 'tshark',
    needs: (file) => /'tshark'/.test(readFileSync(file, 'utf8')),
  },
  {
    program: 'systemd-notify',
    debianPackage: 'systemd',
    needs: (file) => /from '.*\/notify-socket\.ts'$/m.test(readFileSync(file, 'utf8')),
  },
]

/** The conformance suite of MCP: not a dependency, because its own ones need a newer Node. */
const conformance = {
  npmPackage: '@modelcontextprotocol/conformance@0.2.0-alpha.12',
  folder: 'node_modules/.conformance',
  entry: 'node_modules/.conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js',
  needs: under('test/conformance'),
}

/** More tests that pass only at their second attempt are a failure themselves (D540). */
const MAX_UNSTABLE = 5

const isCi = process.env.CI === 'true'

/**
 * Debian puts kamailio where only root's PATH leads, and PostgreSQL's programs into a folder for
 * each version.
 */
const isInstalled = (program) =>
  run('sh', [
    '-c',
    `PATH="$PATH:/usr/sbin:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)"; command -v ${program}`,
  ]).status === 0

function run(command, words, options = {}) {
  return spawnSync(command, words, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
}

/** As root only, which is a container or CI: on a person's machine nothing is installed unasked. */
function installWithApt(debianPackage) {
  if (process.getuid?.() !== 0 || !isInstalled('apt-get')) return
  const apt = (...words) =>
    run('apt-get', words, {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      timeout: 300_000,
    }).status === 0
  // Another apt may be at work, and a mirror may drop a connection.
  const patience = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Acquire::Retries=3']
  const words = ['install', '-y', '-q', '--no-install-recommends', ...patience, debianPackage]
  console.log(`installing ${debianPackage} with apt-get`)
  if (apt(...words)) return
  // Lists that are missing or old, or a package that was unpacked and not set up.
  apt('update', '-q', ...patience)
  apt('install', '-y', '-q', '--fix-broken', ...patience)
  apt(...words)
}

function installConformance() {
  const { npmPackage, folder } = conformance
  console.log(`installing ${npmPackage} with npm`)
  const words = ['install', '--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit']
  for (let attempt = 0; attempt < 2; attempt++) {
    const installed = run('npm', [...words, '--no-fund', npmPackage], { timeout: 300_000 })
    if (installed.status === 0) return
    // A half installed folder would be taken for a whole one.
    rmSync(folder, { recursive: true, force: true })
  }
}

function under(folder) {
  return (file) => file.startsWith(`${folder}/`)
}

/** Those that vitest runs with these arguments. */
function testFilesFor(words) {
  const parts = words.filter((word) => !word.startsWith('-'))
  return readdirSync('test', { recursive: true, encoding: 'utf8' })
    .map((name) => join('test', name))
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)))
    .toSorted()
}

/**
 * The tests that cannot run here: test files with the reasons, and the packages that would help.
 */
function findMissingPeers(files) {
  const reasons = new Map()
  const add = (file, reason) => reasons.set(file, [...(reasons.get(file) ?? []), reason])
  const packages = []
  const unrepeated = []
  for (const { program, debianPackage, needs, repeats } of peers) {
    const concerned = files.filter((file) => needs(file))
    const isRepeated = repeats !== undefined && files.some((file) => repeats(file))
    if (concerned.length === 0 && !isRepeated) continue
    if (!isInstalled(program)) installWithApt(debianPackage)
    if (isInstalled(program)) continue
    packages.push(debianPackage)
    for (const file of concerned) add(file, `${program} is missing`)
    if (isRepeated)
      unrepeated.push(`the tests once more on ${debianPackage}: ${program} is missing`)
  }
  const { entry, npmPackage, needs } = conformance
  const concerned = files.filter((file) => needs(file))
  if (concerned.length > 0 && !existsSync(entry)) installConformance()
  if (!existsSync(entry))
    for (const file of concerned) add(file, `${npmPackage} could not be installed`)
  const missing = [...reasons].map(([file, all]) => ({ file, reason: all.join(', ') }))
  return { missing, packages, unrepeated }
}

function build() {
  const built = run('npm', ['run', '--silent', 'build'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return built.status === 0
}

/** Returns whether vitest found nothing wrong. */
async function runVitest(words, excluded, summary) {
  const { filter, options } = parseCLI([
    'vitest',
    'run',
    '--passWithNoTests',
    ...excluded.flatMap(({ file }) => ['--exclude', file]),
    ...words,
  ])
  const vitest = await startVitest(filter, { ...options, reporters: ['default', summary] })
  await vitest.close()
  return process.exitCode === undefined || process.exitCode === 0
}

/**
 * Databases and other temporary files in memory, where the machine has it: PostgreSQL then copies
 * its template in 86 ms (disk: 700 ms) and starts in 1.4 s (4.7 s).
 */
function temporaryFolderInMemory() {
  const memory = '/dev/shm'
  if (process.env.TMPDIR !== undefined || !existsSync(memory)) return undefined
  const { bavail, bsize } = statfsSync(memory)
  if (bavail * bsize < 4 * 2 ** 30) return undefined
  const folder = mkdtempSync(`${memory}/tollgate-`)
  // The server of PostgreSQL does not run as root.
  chmodSync(folder, 0o711)
  return folder
}

const isWhole = process.argv.includes('--all')
const given = process.argv.slice(2).filter((word) => word !== '--all')
// Who names files wants all that there is of them.
const words =
  isWhole || given.length > 0 ? given : onlyWithAll.flatMap((name) => ['--project', `!${name}`])
const isShort = !isWhole && given.length === 0
if (isShort) process.env.TEST_POSTGRES = 'off'
const temporary = temporaryFolderInMemory()
if (temporary !== undefined) process.env.TMPDIR = temporary
const { missing, packages, unrepeated } = findMissingPeers(testFilesFor(given))
const summary = new RunSummary((line) => console.log(line))
if (!build()) summary.failed.push('build.mjs')
else if (!(await runVitest(words, missing, summary)) && summary.failed.length === 0)
  summary.failed.push('an error outside the tests')

if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true, maxRetries: 10 })

summary.printTotals()
const failed = [...summary.failed]
if (isShort)
  console.log(
    `left to npm test -- --all: PostgreSQL (${summary.skipped.length} tests), browsers, media, what measures`,
  )
else for (const test of summary.skipped) console.log(`skipped: ${test}`)
for (const { file, reason } of missing) {
  if (isCi) failed.push(`${file}: ${reason}`)
  else console.log(`skipped: ${file}: ${reason}`)
}
for (const what of isWhole ? unrepeated : []) {
  if (isCi) failed.push(what)
  else console.log(`skipped: ${what}`)
}
for (const test of summary.unstable) console.log(`unstable: ${test}`)
if (summary.unstable.length > MAX_UNSTABLE)
  failed.push(`${summary.unstable.length} tests passed at their second attempt only`)
if (packages.length > 0)
  console.log(`to run them: sudo apt-get install --no-install-recommends ${packages.join(' ')}`)
for (const name of failed) console.log(`failed: ${name}`)
console.log(`${summary.passed} passed, ${failed.length} failed`)
process.exit(failed.length === 0 ? 0 : 1)
