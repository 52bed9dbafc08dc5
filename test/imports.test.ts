/** Which folder may import which: the planes and layers of ARCHITECTURE.md. */
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { codeOf, holds } from './support/source-files.ts'

const onlyNode = /^node:/
/** SIP grammar, pure: all planes use it. */
const sip = 'schema/sip'
/** The values that pass between the SIP server and an application. */
const applications = 'engine/sip-server/application.ts'
const sipServer = (...names: readonly string[]) => names.map((name) => `engine/sip-server/${name}`)
/** The basics of those layers of the SIP server that do no input and output. */
const sipBasics = [sip, ...sipServer('flow.ts', 'options.ts', 'errors.ts')]

const helpers = [
  'routing',
  'dispatcher',
  'registrar',
  'flood-guard',
  'charging',
  'shares',
  'trunks',
]
/** The folders that a helper of call control may import beside the schema. */
const helpersOf: Readonly<Record<string, readonly string[]>> = {
  // They count calls against limits, or spend from wallets.
  dispatcher: ['engine/shares'],
  routing: ['engine/shares'],
  charging: ['engine/shares'],
  // Probes carriers' gateways with the dispatcher's prober, and reads carriers as routing does.
  trunks: ['engine/dispatcher', 'engine/routing'],
}

/** `names`: the folders of the console below it. */
const inBrowser = (...names: readonly string[]) => ({
  folders: names.map((name) => `control/console/web/${name}`),
  packages: /^(preact(\/hooks)?|@preact\/signals|uplot(\/.*)?)$/,
})

interface Rule {
  readonly folders: readonly string[]
  readonly packages: RegExp
}

/**
 * The imports that each folder may have besides itself: folders (or files) here, and packages. The
 * longest entry that holds a file counts. Tests may import everything.
 */
const map: Readonly<Record<string, Rule>> = {
  // The files that join the parts: from the command line down to one running process.
  engine: { folders: ['engine', 'control', 'schema', 'examples', 'package.json'], packages: /^/ },
  // Applications as operators write them: they know the library alone.
  examples: { folders: [], packages: /^(node:|drachtio-srf$|tollgate$)/ },
  // Read by Nodes that are too old for the rest.
  'engine/launch.ts': { folders: ['package.json'], packages: onlyNode },
  'engine/sip-server': { folders: [sip], packages: onlyNode },
  'engine/sip-server/program': { folders: [sip, ...sipServer('')], packages: /^(node:|sax$)/ },
  'engine/sip-server/build.mjs': { folders: [], packages: /^(node:|esbuild$)/ },
  'engine/sip-server/rules': { folders: [sip, ...sipServer('')], packages: onlyNode },
  'engine/sip-server/capture': { folders: [sip, ...sipServer('')], packages: onlyNode },
  // An application of its own: it knows the server by its protocol alone.
  'engine/sip-server/example': { folders: [], packages: /^drachtio-srf$/ },
  // The sans-IO layers look downwards only, and at no package: no socket, timer, clock or random.
  'engine/sip-server/transaction': {
    folders: [...sipBasics],
    packages: /^$/,
  },
  'engine/sip-server/dialog': {
    folders: [...sipBasics, ...sipServer('transaction')],
    packages: /^$/,
  },
  'engine/sip-server/wire': {
    folders: [...sipBasics, applications],
    packages: /^node:buffer$/,
  },
  'engine/sip-server/core': {
    folders: [...sipBasics, applications, ...sipServer('transaction', 'dialog')],
    packages: /^node:net$/,
  },
  'engine/sip-server/transport': { folders: [sip, ...sipServer('')], packages: /^(node:|ws$)/ },
  'engine/sip-server/clients': { folders: [sip, ...sipServer('')], packages: onlyNode },
  ...Object.fromEntries(
    helpers.map((name) => [
      `engine/${name}`,
      {
        folders: ['schema', ...(helpersOf[name] ?? [])],
        packages: /^(node:|kysely$|better-sqlite3$|lru-cache$)/,
      },
    ]),
  ),
  'engine/call': {
    folders: ['schema', applications, ...helpers.map((name) => `engine/${name}`)],
    packages: onlyNode,
  },
  // Only a drachtio-server elsewhere is spoken to by the library.
  'engine/call/user-agent/drachtio': {
    folders: ['engine/call', 'schema', applications, ...sipServer('index.ts')],
    packages: /^(node:|drachtio-srf$)/,
  },
  // Stands between call control and its legs: call control does not know of it.
  'engine/media': {
    folders: ['engine/call', 'engine/flood-guard', 'schema'],
    packages: onlyNode,
  },
  // Asked through `HookPort` alone.
  'engine/hooks': {
    folders: ['schema', 'engine/call/application'],
    packages: /^(node:|kysely$|lru-cache$)/,
  },
  // Signs and verifies calls; call control asks it through `StirPort` alone.
  'engine/stir': {
    folders: [
      'schema',
      'engine/hooks/circuit-breaker.ts',
      'engine/hooks/webhook/webhook-client.ts',
    ],
    packages: /^(node:|lru-cache$|kysely$|@peculiar\/x509$|reflect-metadata$)/,
  },
  // drachtio-srf beside the product, on a SIP server of its own.
  'engine/hooks/application': {
    folders: ['schema', 'engine/call', ...sipServer('index.ts')],
    packages: /^(node:|drachtio-srf$)/,
  },
  control: { folders: ['schema'], packages: /^/ },
  // Runs in other programs and in browsers: it knows the API alone.
  'control/client': { folders: [], packages: /^$/ },
  'control/client/build.mjs': { folders: ['test/support'], packages: /^(node:|esbuild$)/ },
  // Runs in browsers: it knows the API alone, and its types.
  'control/console/web': inBrowser(''),
  'control/console/web/api': inBrowser(),
  'control/console/web/parts': inBrowser('api'),
  'control/console/web/screens': inBrowser('api', 'parts'),
  'control/console/web/app': inBrowser('api', 'parts', 'screens'),
  'control/console/web/api/views.ts': { folders: ['control'], packages: /^$/ },
  schema: { folders: [], packages: /^(node:|kysely$|better-sqlite3$|lru-cache$|pg$)/ },
  // The ground: types that both planes speak.
  'schema/contracts': { folders: [], packages: onlyNode },
  'schema/sip': { folders: [], packages: /^(node:buffer|sip-status)$/ },
}

const placeOf = (path: string): string =>
  Object.keys(map)
    .filter((folder) => holds(folder, path))
    .toSorted((a, b) => b.length - a.length)[0] ?? ''

/** Paths of files in the project, and names of packages. */
const importsOf = (path: string): readonly string[] =>
  [...(codeOf.get(path) ?? '').matchAll(/(?:\bfrom\s+|(?<!\/)\bimport\s*\(?\s*)'([^']+)'/g)].map(
    ([, name = '']) =>
      name.startsWith('.') ? normalize(join(dirname(path), name)) : `package:${name}`,
  )

/** One line for each import that may not be. */
const wrongImports = (isWrong: (path: string, imported: string) => boolean): readonly string[] =>
  [...codeOf.keys()].flatMap((path) =>
    importsOf(path)
      .filter((imported) => isWrong(path, imported))
      .map((imported) => `${path} imports ${imported}`),
  )

test('every file imports only what the map allows', () => {
  const wrong = wrongImports((path, imported) => {
    const place = placeOf(path)
    const { folders, packages } = map[place] ?? { folders: [], packages: /^$/ }
    if (imported.startsWith('package:')) return !packages.test(imported.slice(8))
    return ![place, ...folders].some((folder) => holds(folder.replace(/\/$/, ''), imported))
  })
  expect(wrong).toEqual([])
})

test('the console takes types of the server, and none of its code', () => {
  const code = codeOf.get('control/console/web/api/views.ts') ?? ''
  const statements = code.match(/^(?:import|export)\b[^']*\bfrom\b|^(?:import|export) *'/gm) ?? []
  expect(statements.length).toBeGreaterThan(0)
  expect(statements.filter((each) => !/^(?:import|export) type\b/.test(each))).toEqual([])
})

/**
 * The folders of `control` and `schema`, lowest first. Files beside the folders stand where the
 * empty name is: those of `control` join the folders, those of `schema` are used by them.
 */
const layers: Readonly<Record<string, readonly string[]>> = {
  control: [
    'http',
    'auth',
    'instances',
    'changes',
    'resources',
    'reports',
    'money',
    'calls',
    'webhooks',
    'search',
    'alerts',
    'observe',
    'agents',
    'console',
    '',
  ],
  schema: [
    'contracts',
    'sip',
    '',
    'net',
    'tables',
    'sql',
    'secrets',
    'storage',
    'records',
    'changes',
    'journal',
    'rules',
    'stir',
    'instances',
    'migrations',
    'sqlite',
    'postgres',
  ],
}

test.each(Object.entries(layers))('no folder of %s imports one above it', (plane, folders) => {
  const layerOf = (path: string): number => {
    const layer = folders.findIndex((name) => name !== '' && holds(`${plane}/${name}`, path))
    return layer < 0 ? folders.indexOf('') : layer
  }
  const wrong = wrongImports(
    (path, imported) =>
      holds(plane, path) &&
      !holds('control/console/web', path) &&
      holds(plane, imported) &&
      layerOf(imported) > layerOf(path),
  )
  expect(wrong).toEqual([])
})

test('the embedded SIP server and SIP grammar are entered through their doors', () => {
  const wrong = wrongImports(
    (path, imported) =>
      !holds('engine/sip-server', path) &&
      !holds(sip, path) &&
      ['engine/sip-server', sip].some((folder) => holds(folder, imported)) &&
      ![...sipServer('index.ts'), applications, `${sip}/index.ts`].includes(imported),
  )
  expect(wrong).toEqual([])
})
