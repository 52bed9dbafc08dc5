/**
 * The map and the habits of this project as a test: imports, sizes, banned calls, words,
 * nothing half done, nothing out of place. What has to differ stands in `exceptions`, with its reason.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { forbiddenNames, forbiddenWords, wordExceptions } from './support/glossary.ts'

/** `rule: path` → why this one file may. An entry that is no longer needed fails too. */
const exceptions: Record<string, string> = {
  ...wordExceptions,
  'state: engine/call/call-runner.ts': 'hands the state to the machine, and to nothing else',
  'length: test/tidy.test.ts': 'every habit of the project in one list',
  'a cast that forgets the type: engine/sip-server/transaction/deadlines.ts':
    'a queue holds deadlines of many targets; each goes back to the target that it came with',
}

const usedExceptions = new Set<string>()

/** The complaints of one rule, without those that have an exception. */
function without(rule: string, complaints: readonly { path: string; what: string }[]): string[] {
  return complaints
    .filter(({ path }) => {
      const key = `${rule}: ${path}`
      if (!(key in exceptions)) return true
      usedExceptions.add(key)
      return false
    })
    .map(({ path, what }) => `${path}: ${what}`)
}

const roots = ['engine', 'control', 'schema', 'test']
const files = roots.flatMap((root) => filesUnder(root))
const sources = files.filter((path) => path.endsWith('.ts') || path.endsWith('.mjs'))
const production = sources.filter((path) => !path.startsWith('test/'))
const textOf = new Map(sources.map((path) => [path, readFileSync(path, 'utf8')]))
const codeOf = new Map([...textOf].map(([path, text]) => [path, withoutComments(text)]))

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

/** Comments blanked, lines kept; a quoted text is passed over so that `//` in it stays. */
function withoutComments(text: string): string {
  return text.replace(
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (match) => (match.startsWith('/') ? match.replace(/[^\n]/g, ' ') : match),
  )
}

const documents = [...readdirSync('.'), ...files].filter((path) => path.endsWith('.md'))

const lineNumber = (text: string, index: number): number => text.slice(0, index).split('\n').length

// ---- imports -----------------------------------------------------------------------------------

const shared = [
  'engine/sip-server/flow.ts',
  'engine/sip-server/options.ts',
  'engine/sip-server/errors.ts',
]
const helpers = ['routing', 'dispatcher', 'registrar', 'guard', 'charging', 'trunks']
const onlyNode = /^node:/
/** SIP grammar, pure: the second public door of the embedded server. */
const sipGrammar = 'engine/sip-server/message/index.ts'

/** What joins the parts: from the command line down to one running process. */
const composition = { folders: ['engine', 'control', 'schema', 'package.json'], packages: /^/ }

/**
 * What each folder may import besides itself: folders (or files) here, and packages. The longest
 * entry that holds a file counts. Tests may import everything.
 */
const map: Record<string, { folders: readonly string[]; packages: RegExp }> = {
  // Read by Nodes that are too old for the rest.
  'engine/launch.ts': { folders: ['package.json'], packages: onlyNode },
  'engine/main.ts': composition,
  'engine/platform.ts': composition,
  'engine/engine-port.ts': { folders: ['engine/engine.ts', 'schema'], packages: /^$/ },
  'engine/first-admin.ts': composition,
  'engine/commands': composition,
  'engine/engine.ts': {
    folders: [
      ...['engine/call', ...helpers.map((name) => `engine/${name}`), 'engine/sip-server/index.ts'],
      ...['engine/config.ts', 'engine/logger.ts', 'engine/call-totals.ts', 'engine/event-log.ts'],
      ...['engine/refused-calls.ts', 'engine/storage-notes.ts', 'schema'],
    ],
    packages: onlyNode,
  },
  'engine/call-totals.ts': { folders: ['schema'], packages: /^$/ },
  'engine/refused-calls.ts': { folders: ['engine/logger.ts', 'schema'], packages: /^$/ },
  'engine/backups': {
    folders: ['engine/logger.ts', 'schema'],
    packages: /^(node:|better-sqlite3$)/,
  },
  'engine/storage-notes.ts': { folders: ['engine/event-log.ts', 'schema'], packages: /^$/ },
  'engine/event-log.ts': { folders: ['schema'], packages: /^$/ },
  'engine/serving-lock.ts': { folders: ['schema'], packages: /^(node:fs|better-sqlite3)$/ },
  'engine/config.ts': { folders: ['engine/settings.ts'], packages: /^(node:|zod$)/ },
  'engine/settings.ts': { folders: ['engine/setting-kinds.ts'], packages: /^zod$/ },
  'engine/setting-kinds.ts': { folders: ['schema/net', sipGrammar], packages: /^(node:net|zod)$/ },
  'engine/logger.ts': { folders: ['schema/contracts'], packages: /^(node:|pino$)/ },
  'engine/sip-server': { folders: [], packages: onlyNode },
  // An application of its own: it knows the server by its protocol alone.
  'engine/sip-server/example': { folders: [], packages: /^drachtio-srf$/ },
  // The sans-IO layers look downwards only, and at no package: no socket, timer, clock or random.
  'engine/sip-server/message': { folders: shared, packages: /^node:buffer$/ },
  'engine/sip-server/transaction': {
    folders: [...shared, 'engine/sip-server/message'],
    packages: /^$/,
  },
  'engine/sip-server/dialog': {
    folders: [...shared, 'engine/sip-server/message', 'engine/sip-server/transaction'],
    packages: /^$/,
  },
  'engine/sip-server/wire': { folders: shared, packages: /^node:buffer$/ },
  'engine/sip-server/core': {
    folders: [
      ...shared,
      ...['message', 'transaction', 'dialog', 'wire'].map((name) => `engine/sip-server/${name}`),
    ],
    packages: /^node:net$/,
  },
  'engine/sip-server/transport': { folders: ['engine/sip-server'], packages: /^(node:|ws$)/ },
  'engine/sip-server/clients': { folders: ['engine/sip-server'], packages: onlyNode },
  ...Object.fromEntries(
    helpers.map((name) => [
      `engine/${name}`,
      {
        folders: ['schema', sipGrammar],
        packages: /^(node:|kysely$|better-sqlite3$|lru-cache$)/,
      },
    ]),
  ),
  // Probes carriers' gateways with the dispatcher's prober, and reads carriers as routing does.
  'engine/trunks': {
    folders: ['engine/dispatcher', 'engine/routing', 'schema', sipGrammar],
    packages: /^$/,
  },
  'engine/call': {
    folders: ['schema', sipGrammar, ...helpers.map((name) => `engine/${name}`)],
    packages: /^(node:|drachtio-srf$|drachtio-srf\/|sip-status$)/,
  },
  control: { folders: ['schema', sipGrammar], packages: /^(?!drachtio-srf)/ },
  schema: { folders: [sipGrammar], packages: /^(node:|kysely$|better-sqlite3$)/ },
}

const holds = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(`${folder}/`)

const placeOf = (path: string): string =>
  Object.keys(map)
    .filter((folder) => holds(folder, path))
    .toSorted((a, b) => b.length - a.length)[0] ?? ''

function importsOf(path: string): string[] {
  const code = codeOf.get(path) ?? ''
  const found = code.matchAll(/(?:\bfrom\s+|\bimport\s*\(?\s*)'([^']+)'/g)
  return [...found].map(([, specifier = '']) => specifier)
}

test('every file imports only what the map of ARCHITECTURE.md allows', () => {
  const complaints = production.flatMap((path) => {
    const place = placeOf(path)
    const rule = map[place]
    if (rule === undefined) return [{ path, what: 'stands in no folder of the map' }]
    return importsOf(path)
      .filter((specifier) => {
        if (!specifier.startsWith('.')) return !rule.packages.test(specifier)
        const target = normalize(join(dirname(path), specifier))
        return ![place, ...rule.folders].some((folder) => holds(folder, target))
      })
      .map((specifier) => ({ path, what: `may not import ${specifier}` }))
  })
  expect(without('imports', complaints)).toEqual([])
})

test('the embedded SIP server is entered through its two doors', () => {
  const complaints = production
    .filter((path) => !holds('engine/sip-server', path))
    .flatMap((path) =>
      importsOf(path)
        .filter((specifier) => /sip-server\/(?!(?:message\/)?index\.ts$)/.test(specifier))
        .map((specifier) => ({
          path,
          what: `imports ${specifier}, not a door of engine/sip-server`,
        })),
    )
  expect(without('door', complaints)).toEqual([])
})

// ---- sizes -------------------------------------------------------------------------------------

/**
 * A file is one story, a folder is one subject. Over budget, `exceptions` says which story or subject it is: a clear
 * name and a whole story are worth more than a number. The bounds have no exceptions.
 */
const budgets = { lines: 400, files: 20 }
const bounds = { lines: 700, files: 30 }

const linesOf = (path: string): number => (textOf.get(path) ?? '').trimEnd().split('\n').length

function filesPerFolder(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const path of production) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  return counts
}

test('a file that is longer than its budget tells one story all the same', () => {
  const told = sources.map((path) => ({
    path,
    lines: linesOf(path),
    what: `${linesOf(path)} lines`,
  }))
  expect(told.filter(({ lines }) => lines > bounds.lines)).toEqual([])
  const long = told.filter(({ lines }) => lines > budgets.lines)
  expect(without('length', long)).toEqual([])
})

test('a folder with more files than its budget has one subject all the same', () => {
  const told = [...filesPerFolder()].map(([path, count]) => ({
    path,
    count,
    what: `${count} files`,
  }))
  expect(told.filter(({ count }) => count > bounds.files)).toEqual([])
  expect(
    without(
      'crowd',
      told.filter(({ count }) => count > budgets.files),
    ),
  ).toEqual([])
})

/** ARCHITECTURE.md, and the README.md of the folder or of one above it. */
const mapsOf = (folder: string): string[] => [
  'ARCHITECTURE.md',
  ...documents.filter((path) => path.endsWith('/README.md') && holds(dirname(path), folder)),
]

test('a map names every folder with its subject', () => {
  const complaints = [...filesPerFolder().keys()]
    .filter((folder) => {
      const named = new RegExp(`(?<![a-z0-9-])${basename(folder)}/|[{,]${basename(folder)}[,}]`)
      return !mapsOf(folder).some((path) => named.test(readFileSync(path, 'utf8')))
    })
    .map((path) => ({ path, what: 'stands in no map' }))
  expect(without('map', complaints)).toEqual([])
})

// ---- banned calls ------------------------------------------------------------------------------

interface Ban {
  readonly what: string
  readonly pattern: RegExp
  readonly instead: string
  /** Folders or files at the rim, where it belongs. */
  readonly rim: readonly string[]
}

const bans: readonly Ban[] = [
  {
    what: 'reading the clock',
    pattern: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bprocess\.hrtime\b/g,
    instead: 'take `now: () => number` as an argument',
    rim: ['engine/main.ts', 'engine/sip-server/options.ts', 'engine/sip-server/server.ts'],
  },
  {
    what: 'drawing random numbers',
    pattern:
      /\bMath\.random\b|\bcrypto\.random|import \{[^}]*\brandom(?:Bytes|UUID|Int|FillSync)\b[^}]*\} from 'node:crypto'/g,
    instead: 'take `random` (or `randomBytes`) as an argument',
    rim: ['engine/main.ts', 'engine/sip-server/options.ts', 'engine/sip-server/server.ts'],
  },
  {
    what: 'reading the environment',
    pattern: /\bprocess\.env\b/g,
    instead: 'declare the setting in engine/settings.ts and take its value as an argument',
    rim: ['engine/main.ts'],
  },
  {
    what: 'handling signals or ending the process',
    pattern: /\bprocess\.(on|once|exit|exitCode)\b/g,
    instead: 'return an exit code to engine/main.ts',
    rim: ['engine/main.ts', 'engine/launch.ts'],
  },
  {
    what: 'starting a timer',
    pattern: /\b(setTimeout|setInterval)\(|(?<!await )\bsetImmediate\(/g,
    instead: 'take `schedule` as an argument, or give a deadline to the owner of the timer',
    rim: [
      'engine/main.ts',
      'engine/sip-server/server.ts',
      'engine/sip-server/machine.ts',
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
      ...['engine/main.ts', 'engine/launch.ts', 'engine/logger.ts', 'engine/commands'],
      'engine/sip-server/example',
    ],
  },
  {
    what: 'moving money',
    pattern: /\binsertInto\('ledger_entry'\)|\bset\(\{[^}]*\b(balance_micros|is_depleted)\b/g,
    instead: 'post it through a `LedgerPort` (schema/contracts/ocs.ts)',
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
  expect(without(what, complaints)).toEqual([])
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
  expect(without('note', matchesIn(sources, /\b(TODO|FIXME|XXX|HACK)\b|not implemented/g))).toEqual(
    [],
  )
})

test('no code is switched off by a comment', () => {
  const disabled =
    /^\s*\/\/\s*(?:(?:const|let|import|export|return|await|if|for|while|expect|test)\b.*[=({;]|.*[;{]$|\}+\)?;?$).*$/gm
  expect(without('disabled', matchesIn(sources, disabled))).toEqual([])
})

test('no test is switched off or singled out', () => {
  const tests = sources.filter((path) => path.startsWith('test/'))
  const pattern =
    /\b(?:test|it|describe)\.(?:only|skip|todo|fails)\b|\b(?:xit|xdescribe|fit|fdescribe)\(/g
  expect(without('switched off', matchesIn(tests, pattern))).toEqual([])
})

// ---- words -------------------------------------------------------------------------------------

const worded = [...sources, ...documents, ...filesUnder('sipp-scenarios')]
  .concat('build.mjs', 'package.json')
  .filter((path) => path !== 'test/support/glossary.ts')

/** Splits names into words (`callId`, `call_id`); line numbers stay. */
const splitNames = (text: string): string =>
  text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll('_', ' ')

/** The first line is the path. */
function placeIn(text: string, index: number): string {
  const line = lineNumber(text, index) - 1
  return line === 0 ? 'its name' : `line ${line}`
}

function wordComplaints(path: string): { rule: string; path: string; what: string }[] {
  const text = `${path}\n${textOf.get(path) ?? readFileSync(path, 'utf8')}`
  const code = `${path}\n${codeOf.get(path) ?? ''}`
  const found = (list: typeof forbiddenWords, where: string) =>
    list.flatMap(({ name, pattern, instead }) =>
      [...where.matchAll(pattern)].map((match) => ({
        rule: `word ${name}`,
        path,
        what: `${placeIn(where, match.index)}: "${match[0]}"; use ${instead}`,
      })),
    )
  return [...found(forbiddenWords, splitNames(text)), ...found(forbiddenNames, code)]
}

test('names, texts, comments and documents use the words of the glossary', () => {
  const complaints = worded.flatMap(wordComplaints)
  expect(complaints.flatMap((complaint) => without(complaint.rule, [complaint]))).toEqual([])
})

// ---- everything in its place -------------------------------------------------------------------

/** Top level as the user fixed it; beside it stand only files. */
const topLevel = [
  ...['engine', 'control', 'schema', 'sipp-scenarios', 'test'],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'Dockerfile'],
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'LICENSE'],
  ...['GUIDE.md', 'SECURITY.md', 'SPECIFICATION.md', 'DECISIONS.md'],
  ...['.ci', '.dockerignore', '.gitignore', '.npmrc', '.oxlintrc.json'],
  ...['.prettierignore', '.prettierrc.json', 'build.mjs', 'knip.json', 'vitest.config.ts'],
]

/** Made by tools, and ignored by git. */
const generated = ['.git', 'node_modules', 'dist', 'data', 'coverage', '.env']

test('the top level holds exactly what it should', () => {
  const found = readdirSync('.').filter((name) => !generated.includes(name))
  expect(found.toSorted()).toEqual(topLevel.toSorted())
})

/** Only `live.ts` shows calls and legs outside their machine: read-only, which the compiler checks. */
test('the state of calls is written by the machine of calls alone', () => {
  const complaints = production
    .filter((path) => !holds('engine/call/call-machine', path))
    .flatMap((path) => {
      const code = codeOf.get(path) ?? ''
      const imports = code.matchAll(
        /import[^;']*\{([^}]*)\}\s*from '[^']*call-machine\/state\.ts'/g,
      )
      const names = [...imports].flatMap(([, list = '']) => list.match(/\w+/g) ?? [])
      const writable = names.filter((name) =>
        /^(?:Call|Leg|Exchange|Transfer|Attempt|World)$/.test(name),
      )
      return [...writable, ...(code.match(/\bcalls\.world\b/g) ?? [])].map((what) => ({
        path,
        what,
      }))
    })
  expect(without('state', complaints)).toEqual([])
})

test('file names are kebab-case', () => {
  const complaints = sources
    .filter((path) => !/^(?:[a-z0-9-]+\/)*[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:ts|mjs)$/.test(path))
    .map((path) => ({ path, what: 'is not kebab-case' }))
  expect(without('names', complaints)).toEqual([])
})

test('a test of a part of the project stands where the part stands', () => {
  const complaints = sources
    .filter((path) => /^test\/(engine|control|schema)\/.*\.test\.ts$/.test(path))
    .filter((path) => !existsSync(dirname(path).replace(/^test\//, '')))
    .map((path) => ({ path, what: 'mirrors no folder' }))
  expect(without('mirror', complaints)).toEqual([])
})

const scenarios = filesUnder('sipp-scenarios').filter((path) => path.endsWith('.xml'))

test('every SIPp scenario says first what it proves', () => {
  const complaints = scenarios
    .filter(
      (path) => !/^<\?xml[^>]*\?>\s*<!--\s*\S[\s\S]{20,}?-->/.test(readFileSync(path, 'utf8')),
    )
    .map((path) => ({ path, what: 'does not begin with a comment' }))
  expect(without('scenario comment', complaints)).toEqual([])
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
  expect(without('scenario run', complaints)).toEqual([])
})

test('every exception is still needed', () => {
  expect(Object.keys(exceptions).filter((key) => !usedExceptions.has(key))).toEqual([])
})
