/** A configuration file of drachtio-server: XML as a tree, within bounds. */
import sax from 'sax'
import { OptionError } from '../errors.ts'

export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  /** The text without white space at its ends. */
  readonly text: string
  readonly children: readonly Element[]
}

interface OpenElement extends Element {
  text: string
  readonly children: OpenElement[]
}

type Handlers = Pick<
  sax.SAXParser,
  'onerror' | 'ondoctype' | 'onopentag' | 'ontext' | 'oncdata' | 'onclosetag'
>

/** A file of this kind has some kilobytes. */
export const maxFileCharacters = 1_048_576
const maxDepth = 16
const maxElements = 10_000

/**
 * No document type, and so no entities but those of XML itself: nothing in a file can make it
 * larger.
 * @throws OptionError
 */
export function readXml(xml: string): Element {
  if (xml.length > maxFileCharacters)
    throw new OptionError(`is larger than ${maxFileCharacters} characters`)
  const parser = sax.parser(true)
  const top: OpenElement = { name: '', attributes: {}, text: '', children: [] }
  const open = [top]
  let count = 0
  const addText = (more: string): void => {
    const element = open.at(-1)
    if (element) element.text += more
  }
  const handlers: Handlers = {
    onerror: ({ message }) => refuse(message.split('\n', 1)[0] ?? '', parser.line),
    ondoctype: () => refuse('a document type is not read', parser.line),
    onopentag: ({ name, attributes }) => {
      count += 1
      if (open.length > maxDepth || count > maxElements) refuse('too many elements', parser.line)
      const element: OpenElement = { name, attributes: textsIn(attributes), text: '', children: [] }
      open.at(-1)?.children.push(element)
      open.push(element)
    },
    ontext: addText,
    oncdata: addText,
    onclosetag: () => {
      const element = open.pop()
      if (element) element.text = element.text.trim()
    },
  }
  Object.assign(parser, handlers)
  parser.write(xml.replace(/^\uFEFF/, '')).close()
  const [root] = top.children
  if (root?.name !== 'drachtio') throw new OptionError('has no element <drachtio>')
  return root
}

/** Attributes as texts, which they are where there are no namespaces. */
function textsIn(attributes: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(attributes)) texts[name] = String(value)
  return texts
}

function refuse(problem: string, line: number): never {
  throw new OptionError(`line ${line + 1}: ${problem}`)
}

/** Every text at a path such as `sip/contacts/contact` or `admin@port`. */
export function textsAt(root: Element, path: string): readonly string[] {
  const [elements = '', attribute] = path.split('@')
  const found = elementsAt(root, elements)
  if (attribute === undefined) return found.map(({ text }) => text)
  return found.flatMap(({ attributes }) => attributes[attribute] ?? [])
}

export function elementsAt(root: Element, path: string): readonly Element[] {
  let found: readonly Element[] = [root]
  for (const name of path.split('/'))
    found = found.flatMap(({ children }) => children.filter((child) => child.name === name))
  return found
}

/** The paths of everything that says something. */
export function pathsIn(root: Element, path = ''): readonly string[] {
  return root.children.flatMap((child) => {
    const own = path === '' ? child.name : `${path}/${child.name}`
    const attributes = Object.keys(child.attributes).map((name) => `${own}@${name}`)
    const isLeaf = child.children.length === 0
    return [...attributes, ...(isLeaf || child.text !== '' ? [own] : []), ...pathsIn(child, own)]
  })
}
