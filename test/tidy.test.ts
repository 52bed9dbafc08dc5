/** The habits of this project as a test: maps, banned calls, nothing half done, nothing out of place. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { expect, test } from 'vitest'
import {
  codeOf,
  documents,
  Exceptions,
  filesUnder,
  holds,
  lineNumber,
  production,
  sources,
  textOf,
} from './support/source-files.ts'

const exceptions = new Exceptions({
  'starting a timer: schema/sql/sqlite-statements.ts':
    'a transaction that outlives its turn of the event loop is ended at the end of that turn',
  'a cast that forgets the type: engine/sip-server/transaction/machine.ts':
    'a queue holds deadlines of many targets; each goes back to the target that it came with',
})

// ---- maps ---------------------------------------------------------------------------------------

const foldersOf = (paths: readonly string[]): Set<string> =>
  new Set(paths.map((path) => dirname(path)))

/** ARCHITECTURE.md, and the README.md of the folder or of one above it. */
const mapsOf = (folder: string): string[] => [
  'ARCHITECTURE.md',
  ...documents.filter((path) => path.endsWith('/README.md') && holds(dirname(path), folder)),
]

test('a map names every folder with its subject', () => {
  const complaints = [...foldersOf(production)]
    .filter((folder) => {
      const named = new RegExp(`(?<![\\w-])${basename(folder)}(?![\\w-])`)
      return !mapsOf(folder).some((path) => named.test(readFileSync(path, 'utf8')))
    })
    .map((path) => ({ path, what: 'stands in no map' }))
  expect(exceptions.without('map', complaints)).toEqual([])
})

// ---- banned calls ------------------------------------------------------------------------------

interface Ban {
  readonly what: string
  readonly pattern: RegExp
  readonly instead: string
  /** Folders or files at the rim, where it belongs. */
  readonly rim: readonly string[]
}

/** The SIP server as a program of its own. */
const sipServerProgram = 'engine/sip-server/bin.ts'

const bans: readonly Ban[] = [
  {
    what: 'reading the clock',
    pattern: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bprocess\.hrtime\b/g,
    instead: 'take `now: () => number` as an argument',
    rim: [
      'engine/main.ts',
      sipServerProgram,
      'engine/sip-server/options.ts',
      'engine/sip-server/server.ts',
      // A thread is its own rim.
      'engine/media/spy/mixer-worker.ts',
      'control/reports/report-worker.ts',
      'control/console/web/api/browser.ts',
      'control/client',
    ],
  },
  {
    what: 'drawing random numbers',
    pattern:
      /\bMath\.random\b|\bcrypto\.random|import \{[^}]*\brandom(?:Bytes|UUID|Int|FillSync)\b[^}]*\} from 'node:crypto'/g,
    instead: 'take `random` (or `randomBytes`) as an argument',
    rim: [
      'engine/main.ts',
      sipServerProgram,
      'engine/sip-server/options.ts',
      'engine/sip-server/server.ts',
      'control/client',
    ],
  },
  {
    what: 'reading the environment',
    pattern: /\bprocess\.env\b/g,
    instead: 'declare the setting in engine/settings.ts and take its value as an argument',
    rim: ['engine/main.ts', 'engine/launch.ts', sipServerProgram],
  },
  {
    what: 'handling signals or ending the process',
    pattern: /\bprocess\.(on|once|exit|exitCode)\b/g,
    instead: 'return an exit code to engine/main.ts',
    rim: ['engine/main.ts', 'engine/launch.ts', sipServerProgram],
  },
  {
    what: 'starting a timer',
    pattern: /\b(setTimeout|setInterval)\(|(?<!await )\bsetImmediate\(/g,
    instead: 'take `schedule` as an argument, or give a deadline to the owner of the timer',
    rim: [
      'engine/main.ts',
      'engine/media/spy/mixer-worker.ts',
      'control/reports/report-worker.ts',
      'engine/sip-server/capture/packet-sender.ts',
      'engine/sip-server/server.ts',
      'engine/sip-server/machine.ts',
      'control/console/web/api/browser.ts',
      'control/client',
      'engine/sip-server/clients',
      'engine/sip-server/transport',
      'engine/sip-server/dns/system-dns.ts',
      'engine/sip-server/example',
    ],
  },
  {
    what: 'printing',
    pattern: /\bconsole\.\w+\(|\bprocess\.std(out|err)\b/g,
    instead: 'log through the logger; only commands speak to the terminal',
    rim: [
      'engine/main.ts',
      'engine/launch.ts',
      'engine/logger.ts',
      'engine/commands',
      sipServerProgram,
      'engine/sip-server/example',
    ],
  },
  {
    what: 'moving money',
    pattern: /\binsertInto\('ledger_entry'\)|\bset\(\{[^}]*\b(balance_micros|is_depleted)\b/g,
    instead: 'post it through a `LedgerPort` (schema/contracts/charging.ts)',
    rim: ['engine/charging/ledger'],
  },
  {
    what: 'silencing a check',
    pattern:
      /@ts-(ignore|expect-error|nocheck)|(ox|es)lint-disable(?!-next-line [\w/-]+ -- \S)|prettier-ignore/g,
    instead: 'mend what it complains about',
    rim: [],
  },
  {
    what: 'a cast that forgets the type',
    pattern: /\bas (unknown as|never\b|any\b)/g,
    instead: 'parse the value where it comes in',
    rim: [],
  },
]

test.each(bans)('$what is left to the rim', ({ what, pattern, instead, rim }) => {
  const complaints = production
    .filter((path) => !rim.some((folder) => holds(folder, path)))
    .flatMap((path) => {
      const code = (what === 'silencing a check' ? textOf : codeOf).get(path) ?? ''
      return [...code.matchAll(pattern)].map((match) => ({
        path,
        what: `line ${lineNumber(code, match.index)}: ${match[0]}; ${instead}`,
      }))
    })
  expect(exceptions.without(what, complaints)).toEqual([])
})

// ---- nothing half done -------------------------------------------------------------------------

const self = 'test/tidy.test.ts'

function matchesIn(paths: readonly string[], pattern: RegExp) {
  return paths
    .filter((path) => path !== self)
    .flatMap((path) => {
      const text = textOf.get(path) ?? ''
      return [...text.matchAll(pattern)].map((match) => ({
        path,
        what: `line ${lineNumber(text, match.index)}: ${match[0].trim()}`,
      }))
    })
}

test('no work is left as a note in the code: open points are issues', () => {
  expect(
    exceptions.without('note', matchesIn(sources, /\b(TODO|FIXME|XXX|HACK)\b|not implemented/g)),
  ).toEqual([])
})

test('no code is switched off by a comment', () => {
  const disabled =
    /^\s*\/\/\s*(?:(?:const|let|import|export|return|await|if|for|while|expect|test)\b.*[=({;]|.*[;{]$|\}+\)?;?$).*$/gm
  expect(exceptions.without('disabled', matchesIn(sources, disabled))).toEqual([])
})

test('no test is switched off or singled out', () => {
  const tests = sources.filter((path) => path.startsWith('test/'))
  const pattern =
    /\b(?:test|it|describe)\.(?:only|skip|todo|fails)\b|\b(?:xit|xdescribe|fit|fdescribe)\(/g
  expect(exceptions.without('switched off', matchesIn(tests, pattern))).toEqual([])
})

// ---- everything in its place -------------------------------------------------------------------

/** Top level as the user fixed it; beside it stand only files. */
const topLevel = [
  'engine',
  'control',
  'schema',
  'sipp-scenarios',
  'test',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'Dockerfile',
  'compose.yaml',
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'LICENSE',
  'GUIDE.md',
  'SECURITY.md',
  'SPECIFICATION.md',
  'DECISIONS.md',
  '.ci',
  '.dockerignore',
  '.gitignore',
  '.npmrc',
  '.oxlintrc.json',
  '.prettierignore',
  '.prettierrc.json',
  'build.mjs',
  'knip.json',
  'vitest.config.ts',
]

/** Made by tools, and ignored by git. */
const generated = ['.git', 'node_modules', 'dist', 'data', 'coverage', '.env']

test('the top level holds exactly what it should', () => {
  const found = readdirSync('.').filter((name) => !generated.includes(name))
  expect(found.toSorted()).toEqual(topLevel.toSorted())
})

test('file names are kebab-case', () => {
  const complaints = sources
    .filter((path) => !/^(?:[a-z0-9-]+\/)*[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:tsx?|mjs)$/.test(path))
    .map((path) => ({ path, what: 'is not kebab-case' }))
  expect(exceptions.without('names', complaints)).toEqual([])
})

test('a test of a part of the project stands where the part stands', () => {
  const complaints = sources
    .filter((path) => /^test\/(engine|control|schema)\/.*\.test\.ts$/.test(path))
    .filter((path) => !existsSync(dirname(path).replace(/^test\//, '')))
    .map((path) => ({ path, what: 'mirrors no folder' }))
  expect(exceptions.without('mirror', complaints)).toEqual([])
})

const scenarios = filesUnder('sipp-scenarios').filter((path) => path.endsWith('.xml'))

test('every SIPp scenario says first what it proves', () => {
  const complaints = scenarios
    .filter(
      (path) => !/^<\?xml[^>]*\?>\s*<!--\s*\S[\s\S]{20,}?-->/.test(readFileSync(path, 'utf8')),
    )
    .map((path) => ({ path, what: 'does not begin with a comment' }))
  expect(exceptions.without('scenario comment', complaints)).toEqual([])
})

/** What tests call scenarios by: quoted texts, templates with a fixed part in the file's name, whole folders. */
function scenarioNames(): RegExp[] {
  const code = sources
    .filter((path) => path.startsWith('test/') && path !== self)
    .map((path) => codeOf.get(path) ?? '')
    .join('\n')
  const literals = [...code.matchAll(/'([a-z0-9/-]+)(?:\.xml)?'|`([^`\s]+?)(?:\.xml)?`/g)]
  const whole = [...code.matchAll(/readdirSync\('sipp-scenarios\/([a-z/-]+)'\)/g)]
  const folders = whole.map(([, folder = '']) => new RegExp(`^${folder}/`))
  const names = literals
    .map(([, quoted, template]) => quoted ?? template ?? '')
    .filter((text) => /[a-z0-9]/.test((text.split('/').at(-1) ?? '').replace(/\$\{[^}]*\}/g, '')))
    .map((text) => text.replace(/\$\{[^}]*\}/g, '*').replaceAll(/[^a-z0-9/*-]/g, '\\$&'))
    .map((text) => new RegExp(`^(?:.*/)?${text.replaceAll('*', '[a-z0-9-]+')}$`))
  return [...folders, ...names]
}

test('every SIPp scenario is run by a test', () => {
  const names = scenarioNames()
  const complaints = scenarios
    .map((path) => ({ path, name: path.replace(/^sipp-scenarios\/|\.xml$/g, '') }))
    .filter(({ name }) => !names.some((pattern) => pattern.test(name)))
    .map(({ path }) => ({ path, what: 'is run by no test' }))
  expect(exceptions.without('scenario run', complaints)).toEqual([])
})

test('every exception is still needed', () => {
  expect(exceptions.unused()).toEqual([])
})
