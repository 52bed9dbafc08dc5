/** Citations of sources and documents exist, and promises of documents are in the code. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { allScopes } from '../control/auth/scopes.ts'
import { allTools } from '../control/agents/catalog/index.ts'
import { seedFile } from '../engine/commands/seed.ts'
import { eventTypes } from '../schema/contracts/engine.ts'
import { openControl } from './support/control.ts'
import { emptyStore } from './support/empty-store.ts'
import { filesUnder } from './support/source-files.ts'

const tree = ['engine', 'control', 'schema', 'examples', 'test', 'sipp-scenarios'].flatMap(
  filesUnder,
)
const files = [...tree, ...readdirSync('.')]
const documents = files.filter((path) => path.endsWith('.md'))
const sources = tree.filter((path) => /\.(?:tsx?|mjs|xml)$/.test(path))
const textOf = new Map([...documents, ...sources].map((path) => [path, readFileSync(path, 'utf8')]))
const read = (path: string): string => textOf.get(path) ?? ''

/**
 * A document as it is; a source with its code blanked, and with the stars of its comments: each
 * character stands where it stood.
 */
function proseOf(path: string): string {
  const text = read(path)
  if (path.endsWith('.md') || path.endsWith('.xml')) return text
  const parts = text.matchAll(
    /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|[^'"/]+|[^]/g,
  )
  return [...parts]
    .map(([part, comment]) =>
      comment === undefined
        ? part.replaceAll(/[^\n]/g, ' ')
        : comment.replaceAll(/\n\s*\* ?/g, (start) => ' '.repeat(start.length)),
    )
    .join('')
}

/** One line for each match for which `isThere` says no: the file, the line, and what is cited. */
const missing = (
  paths: readonly string[],
  pattern: RegExp,
  isThere: (found: readonly string[], path: string) => boolean,
): string[] =>
  paths.flatMap((path) =>
    [...proseOf(path).matchAll(pattern)]
      .filter((found) => !isThere(found, path))
      .map((found) => `${path}:${lineOf(path, found.index)}: ${found[0].trim()}`),
  )

const lineOf = (path: string, at: number): number => read(path).slice(0, at).split('\n').length

/** The ids of the headings of a document: its own, and those that GitHub makes of the text. */
function anchorsOf(document: string): ReadonlySet<string> {
  const text = readFileSync(document, 'utf8')
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

test('every link leads to a file and a heading', () => {
  const link = /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g
  const wrong = missing(documents, link, ([, path = '', anchor], document) => {
    const target = path === '' ? document : normalize(join(dirname(document), path))
    return existsSync(target) && (anchor === undefined || anchorsOf(target).has(anchor))
  })
  expect(wrong).toEqual([])
})

test('every section and decision that is cited exists', () => {
  const section = /([\w/.-]+\.md)`?((?:,? (?:and |or |to )?§\d+(?:\.\d+)*)+)/g
  const sections = missing([...documents, ...sources], section, ([, name = '', numbers = '']) =>
    documents
      .filter((path) => path === name || path.endsWith(`/${name}`))
      .some((path) =>
        (numbers.match(/\d+(?:\.\d+)*/g) ?? []).every((number) =>
          read(path).includes(`<a id="s${number}">`),
        ),
      ),
  )
  expect(sections).toEqual([])
  const decision = /(?<![%\w])D([1-9]\d{0,2})\b/g
  const decisions = anchorsOf('DECISIONS.md')
  expect(
    missing([...documents, ...sources], decision, ([, number = '']) => decisions.has(`d${number}`)),
  ).toEqual([])
})

test('every file and folder that a comment or document names exists', () => {
  /** How CONTRIBUTING.md shows what names look like. */
  const isExample = (name: string): boolean =>
    /\/x\/y\b|^kebab-case\.ts$|\/contacts\.ts$|^dist\//.test(name)
  const path = /(?<![\w/.-])(?:engine|control|schema|test|sipp-scenarios)\/[\w./-]*[\w/]/g
  const paths = missing(
    [...documents, ...sources],
    path,
    ([name = '']) => existsSync(name) || isExample(name),
  )
  expect(paths).toEqual([])
  const named = /`([a-z][\w-]*(?:\/[\w.-]+)*(?:\/|\.(?:ts|mjs)))`/g
  const belowDocument = missing(documents, named, ([, name = ''], document) => {
    const folder = dirname(document)
    return (
      existsSync(name) ||
      isExample(name) ||
      files
        .filter((file) => folder === '.' || file.startsWith(`${folder}/`))
        .some((file) =>
          `/${file}${name.endsWith('/') ? '' : '/'}`.includes(`/${name.replace(/\/?$/, '/')}`),
        )
    )
  })
  expect(belowDocument).toEqual([])
})

/** A path from the folder of the file, from one above it, or from the mirrored one of a test. */
function isSeenFrom(path: string, name: string): boolean {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (existsSync(join(folder, name)) || existsSync(join(folder.replace(/^test\//, ''), name)))
      return true
    if (folder === '.') return false
  }
}

test('every file that a comment names is there, as a path from its folder or one above', () => {
  const code = sources.filter((path) => !path.endsWith('.xml'))
  const file = /(?<![\w/.@<-])((?:\.{1,2}\/)*[a-z][\w.-]*(?:\/[\w.-]+)*\.(?:tsx?|mjs))\b(?![\w/-])/g
  const folder = /(?<=`)((?:[a-z][\w-]*\/)+)(?=`)/g
  const wrong = [file, folder].flatMap((pattern) =>
    missing(code, pattern, ([, name = ''], path) => isSeenFrom(path, name)),
  )
  expect(wrong).toEqual([])
})

test('CONTRIBUTING.md answers where things are decided with names that stand in the files', () => {
  const [, section = ''] = read('CONTRIBUTING.md').split('## Where is it decided?')
  const answers =
    section
      .split('\n## ')[0]
      ?.split('\n')
      .filter((line) => line.startsWith('- ')) ?? []
  expect(answers.length).toBeGreaterThanOrEqual(20)
  const named = /((?:`\w+`(?:, | and )?)+) in `([\w/.-]+\.tsx?)`/g
  const wrong = answers.flatMap((line) => {
    const places = [...line.matchAll(named)]
    if (places.length > 2) return [`more than two look-ups: ${line}`]
    if (places.length === 0 && !line.endsWith(' the next section.')) return [`no name: ${line}`]
    return places.flatMap(([, names = '', path = '']) =>
      [...names.matchAll(/\w+/g)]
        .filter(([name]) => name !== 'and' && !new RegExp(`\\b${name}\\b`).test(read(path)))
        .map(([name]) => `CONTRIBUTING.md: ${name} is not in ${path}`),
    )
  })
  expect(wrong).toEqual([])
})

test('each example of test/README.md is a test that is run', () => {
  const blocks = [...read('test/README.md').matchAll(/```ts\n([\s\S]*?)\n```/g)]
  expect(blocks.length).toBeGreaterThan(3)
  const bodies = blocks.map(([, block = '']) => block.slice(block.indexOf('\n\n')).trim())
  expect(bodies.filter((body) => !read('test/examples.test.ts').includes(body))).toEqual([])
})

const contracts = ['README.md', 'GUIDE.md', 'SPECIFICATION.md', 'SECURITY.md']

test('codes, fields, metrics and settings that documents name are in the code', () => {
  const code = tree.filter((path) =>
    /^(?:engine|control|schema|examples)\/.*\.(?:ts|json)$/.test(path),
  )
  const words = new Set(code.flatMap((path) => readFileSync(path, 'utf8').split(/[^A-Za-z0-9_]+/)))
  const named = /`([A-Za-z]+(?:_[A-Za-z0-9]+)+)(?:[={][^`]*)?`/g
  // Figures of the engine get the prefix when they are scraped.
  const wrong = missing(
    contracts,
    named,
    ([, name = '']) => words.has(name) || words.has(name.replace(/^tollgate_/, '')),
  )
  expect(wrong).toEqual([])
})

test('every operation of the API that a document names is one', async () => {
  const { app } = await openControl()
  const answer = await app.request('/openapi.json')
  const { paths } = (await answer.json()) as { paths: Record<string, object> }
  const shapes = new Set(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(
        (method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '*')}`,
      ),
    ),
  )
  const named = /`(GET|POST|PATCH|PUT|DELETE) (?:https?:\/\/<edge>)?(\/[\w/{}.-]*)[^`]*`/g
  const operations = [...contracts, 'DECISIONS.md', 'ARCHITECTURE.md']
  const wrong = missing(operations, named, ([, method = '', path = '']) => {
    const plain = path.replaceAll(/\{\w+\}/g, '*').replace(/^\/api(?!\/(?:v1|client|ocs))/, '')
    return ['', '/api/v1', '/api'].some((prefix) => shapes.has(`${method} ${prefix}${plain}`))
  })
  expect(wrong).toEqual([])
})

test('SPECIFICATION.md lists every scope and event, and the tools of its table exist', () => {
  const section = (number: string): string =>
    read('SPECIFICATION.md').split(`<a id="s${number}">`)[1]?.split('<a id="s')[0] ?? ''
  const words = new Set(section('5.9').split(/[^a-z:]+/))
  const parts = allScopes.flatMap((scope) => [scope.split(':')[0] ?? '', scope])
  const plain = parts.filter((part) => !/:(?:read|write)$/.test(part))
  expect(plain.filter((part) => !words.has(part))).toEqual([])
  expect(eventTypes.filter((type) => !section('6.2').includes(`\`${type}\``))).toEqual([])
  const tools = [...section('4.4').matchAll(/^\| `(\w+)`/gm)].map(([, name = '']) => name)
  expect(tools).not.toEqual([])
  expect(tools.filter((name) => !allTools.some((tool) => tool.name === name))).toEqual([])
})

test('the seed files of README.md and GUIDE.md can be applied, one after the other', async () => {
  const text = read('README.md') + read('GUIDE.md')
  const store = emptyStore()
  const seeds = [...text.matchAll(/<<'JSON'\n([\s\S]*?)\nJSON|```json\n([\s\S]*?)\n```/g)]
  expect(seeds.length).toBeGreaterThanOrEqual(2)
  for (const [, heredoc, block] of seeds) await seedFile(store, heredoc ?? block ?? '', 0)
  store.close()
})

test('every npm script that a document mentions is there', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: object }
  const named = /npm (?:run ([\w-]+)|(test|start)\b)/g
  const wrong = missing(
    [...contracts, 'CONTRIBUTING.md'],
    named,
    ([, run, own]) => (run ?? own ?? '') in scripts,
  )
  expect(wrong).toEqual([])
})

test('each guarantee of SECURITY.md names the test that shows it', () => {
  const [, guaranteed = ''] = read('SECURITY.md').split('## What is guaranteed')
  const each = guaranteed.split('\n').filter((line) => /^(?:- |\| (?!-|against ))/.test(line))
  expect(each.length).toBeGreaterThan(10)
  expect(each.filter((line) => !/`test\/[^`]+`/.test(line))).toEqual([])
})
