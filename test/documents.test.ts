/**
 * What sources and documents cite is there: sections of SPECIFICATION.md, decisions of DECISIONS.md,
 * files, and the headings that links lead to.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { allScopes } from '../control/auth/scopes.ts'
import { allTools } from '../control/agents/catalog/index.ts'
import { eventTypes } from '../schema/contracts/engine.ts'
import { openControl } from './support/control.ts'
import { filesUnder } from './support/source-files.ts'

const tree = ['engine', 'control', 'schema', 'test', 'sipp-scenarios'].flatMap((root) =>
  filesUnder(root),
)
const rootFiles = readdirSync('.', { withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map(({ name }) => name)
const files = [...tree, ...rootFiles]
const documents = files.filter((path) => path.endsWith('.md'))
/** This file quotes what it looks for. */
const sources = tree.filter(
  (path) => /\.(ts|mjs|xml)$/.test(path) && path !== 'test/documents.test.ts',
)
const textOf = new Map([...documents, ...sources].map((path) => [path, readFileSync(path, 'utf8')]))

/** The comments of a source, or a document as a whole: where something is cited. */
function proseOf(path: string): string {
  const text = textOf.get(path) ?? ''
  if (path.endsWith('.md') || path.endsWith('.xml')) return text
  const found = text.matchAll(
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|(\/\/[^\n]*|\/\*[\s\S]*?\*\/)/g,
  )
  return [...found].map(([, comment = '']) => comment.replaceAll(/\n\s*\* ?/g, ' ')).join('\n')
}

/** A file's text with each comment on one line, so that a citation may go over two. */
const joined = (path: string): string =>
  (textOf.get(path) ?? '').replaceAll(/\n\s*(?:\*|\/\/) ?/g, ' ')

/** One complaint for each match for which `isThere` says no. */
function missing(
  paths: readonly string[],
  read: (path: string) => string,
  pattern: RegExp,
  isThere: (found: readonly string[], path: string) => boolean,
): string[] {
  return paths.flatMap((path) =>
    [...read(path).matchAll(pattern)]
      .filter((found) => !isThere(found, path))
      .map(([cited]) => `${path}: ${cited.trim()}`),
  )
}

const citing = [...documents, ...sources]

/** The ids of the headings of a document: its own, and those that GitHub makes of the text. */
function anchorsOf(document: string): ReadonlySet<string> {
  const text = textOf.get(document) ?? readFileSync(document, 'utf8')
  const own = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replaceAll(/<[^>]+>|[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .toLowerCase()
      .replaceAll(/\s/g, '-'),
  )
  return new Set([...own, ...headings])
}

const sectionsOf = (document: string): ReadonlySet<string> =>
  new Set(
    [...(textOf.get(document) ?? '').matchAll(/^#+ <a id="s([\d.]+)"><\/a>§\1 /gm)].map(
      ([, number = '']) => number,
    ),
  )

const numbersIn = (text: string): string[] =>
  [...text.matchAll(/§(\d+(?:\.\d+)*)/g)].map(([, number = '']) => number)

test('every section of a document that is cited exists', () => {
  const cited = /([\w/.-]+\.md)`?((?:,? (?:and |or |to )?§\d+(?:\.\d+)*)+)/g
  expect(
    missing(citing, joined, cited, ([, name = '', numbers = '']) =>
      documents
        .filter((path) => path === name || path.endsWith(`/${name}`))
        .some((path) => numbersIn(numbers).every((number) => sectionsOf(path).has(number))),
    ),
  ).toEqual([])
})

test('a section that a numbered document names without a title is its own', () => {
  const numbered = documents.filter((path) => sectionsOf(path).size > 0)
  expect(numbered.length).toBeGreaterThan(1)
  const foreign = /(?:RFC|OpenAPI) [\d.]+ §[\d.]+|[\w/.-]+\.md`? §[\d.]+/g
  for (const path of numbered) {
    const own = sectionsOf(path)
    const named = numbersIn((textOf.get(path) ?? '').replaceAll(foreign, ''))
    expect(named.filter((number) => !own.has(number))).toEqual([])
  }
})

test('every decision that is cited exists, and stands once', () => {
  const text = readFileSync('DECISIONS.md', 'utf8')
  const numbers = [...text.matchAll(/^### <a id="d(\d+)"><\/a>D\1 /gm)].map(([, n = '']) => n)
  expect(numbers).toEqual([...new Set(numbers)])
  expect(
    missing(citing, proseOf, /(?<![%\w])D([1-9]\d{0,2})\b/g, ([, number = '']) =>
      numbers.includes(number),
    ),
  ).toEqual([])
})

test('nothing is cited that is not in the repository', () => {
  const outside =
    /\b(?:decisions?(?:\.md)?|specification|protocol page|design page) (?:§|[A-Z]?\d)[\w.§-]*/gi
  expect(missing(citing, joined, outside, () => false)).toEqual([])
})

test('a bare section number in a source has an RFC or a document above it', () => {
  const complaints = sources.filter((path) => {
    const text = textOf.get(path) ?? ''
    const first = text.search(/§\d/)
    return first !== -1 && !/RFC|\.md|OpenAPI|sqlite\.org/.test(text.slice(0, first))
  })
  expect(complaints).toEqual([])
})

/** How CONTRIBUTING.md shows what names look like. */
const isExample = (text: string): boolean => /\/x\/y\b|^kebab-case\.ts$/.test(text)

test('every file and folder of the project that a comment or document names exists', () => {
  const path = /(?<![\w/.-])(?:engine|control|schema|test|sipp-scenarios)\/[\w./-]*[\w/]/g
  expect(
    missing(
      [...documents, ...sources],
      proseOf,
      path,
      ([text = '']) => existsSync(text) || isExample(text),
    ),
  ).toEqual([])
})

test('every file and folder that a document names in code is there, below the folder of the document', () => {
  const complaints = documents.flatMap((document) => {
    if (document === 'CHANGELOG.md') return []
    const folder = dirname(document)
    const below = files.filter((path) => folder === '.' || path.startsWith(`${folder}/`))
    const isThere = (name: string): boolean =>
      existsSync(name) ||
      isExample(name) ||
      below.some((path) =>
        name.endsWith('/') ? `/${path}`.includes(`/${name}`) : path.endsWith(`/${name}`),
      )
    const named = proseOf(document).matchAll(/`([a-z][\w-]*(?:\/[\w.-]+)*(?:\/|\.(?:ts|mjs)))`/g)
    return [...named]
      .map(([, name = '']) => name)
      .filter((name) => !isThere(name))
      .map((name) => `${document}: ${name}`)
  })
  expect(complaints).toEqual([])
})

test('every link leads to a file and a heading', () => {
  const link = /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g
  const complaints = documents.flatMap((document) =>
    [...proseOf(document).matchAll(link)]
      .filter(([, path = '', anchor]) => {
        const target = path === '' ? document : normalize(join(dirname(document), path))
        if (!existsSync(target)) return true
        return anchor !== undefined && !anchorsOf(target).has(anchor)
      })
      .map(([text]) => `${document}: ${text}`),
  )
  expect(complaints).toEqual([])
})

test('each example of test/README.md is a test that is run', () => {
  const run = ['test', 'test/process', 'test/sipp'].map((folder) =>
    readFileSync(`${folder}/examples.test.ts`, 'utf8'),
  )
  const blocks = [...(textOf.get('test/README.md') ?? '').matchAll(/```ts\n([\s\S]*?)\n```/g)]
  expect(blocks.length).toBeGreaterThan(8)
  const bodies = blocks.map(([, block = '']) => block.slice(block.indexOf('\n\n')).trim())
  expect(bodies.filter((body) => !run.some((text) => text.includes(body)))).toEqual([])
})

test('the map of test/support names each of its files', () => {
  const named = textOf.get('test/README.md') ?? ''
  const helpers = readdirSync('test/support').filter((name) => /(?<!\.test)\.ts$/.test(name))
  expect(helpers.filter((name) => !named.includes(`\`${name}\``))).toEqual([])
})

const contracts = ['README.md', 'GUIDE.md', 'SPECIFICATION.md', 'SECURITY.md']

test('codes, fields, metrics and settings that documents name are in the code', () => {
  const code = tree
    .filter((path) => /^(?:engine|control|schema)\/.*\.(?:ts|json)$/.test(path))
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n')
  const words = new Set(code.split(/[^A-Za-z0-9_]+/))
  const complaints = contracts.flatMap((document) =>
    [...proseOf(document).matchAll(/`([A-Za-z]+(?:_[A-Za-z0-9]+)+)(?:[={][^`]*)?`/g)]
      .map(([, name = '']) => name)
      // Figures of the engine get the prefix when they are scraped.
      .filter((name) => !words.has(name) && !words.has(name.replace(/^tollgate_/, '')))
      .map((name) => `${document}: ${name}`),
  )
  expect(complaints).toEqual([])
})

test('SPECIFICATION.md lists every scope and event, and the tools of its table exist', () => {
  const specification = textOf.get('SPECIFICATION.md') ?? ''
  const section = (number: string): string =>
    specification.split(`<a id="s${number}">`)[1]?.split('<a id="s')[0] ?? ''
  const words = new Set(section('5.9').split(/[^a-z:]+/))
  const parts = new Set(allScopes.flatMap((scope) => [scope.split(':')[0] ?? '', scope]))
  const plain = [...parts].filter((part) => !/:(?:read|write)$/.test(part))
  expect(plain.filter((part) => !words.has(part))).toEqual([])
  expect(eventTypes.filter((type) => !section('6.2').includes(`\`${type}\``))).toEqual([])
  const tools = [...section('4.4').matchAll(/^\| `(\w+)`/gm)].map(([, name = '']) => name)
  expect(tools).toHaveLength(8)
  expect(tools.filter((name) => !allTools.some((tool) => tool.name === name))).toEqual([])
})

test('every operation of the API that a document names is one', async () => {
  const { app } = await openControl()
  const answer = await app.request('/openapi.json')
  const { paths } = (await answer.json()) as { paths: Record<string, object> }
  const shapes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(
      (method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '*')}`,
    ),
  )
  const named = /`(GET|POST|PATCH|PUT|DELETE) (?:https?:\/\/<edge>)?(\/[\w/{}.-]*)[^`]*`/g
  const complaints = [...contracts, 'DECISIONS.md', 'ARCHITECTURE.md'].flatMap((document) =>
    [...proseOf(document).matchAll(named)]
      .map(([, method = '', path = '']) => {
        const plain = path.replaceAll(/\{\w+\}/g, '*').replace(/^\/api(?!\/(?:v1|client|ocs))/, '')
        const spellings = [plain, `/api/v1${plain}`, `/api${plain}`]
        return spellings.some((spelling) => shapes.includes(`${method} ${spelling}`))
          ? ''
          : `${document}: ${method} ${path}`
      })
      .filter((complaint) => complaint !== ''),
  )
  expect(complaints).toEqual([])
})
