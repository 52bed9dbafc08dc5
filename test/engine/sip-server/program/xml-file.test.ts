import { expect, test } from 'vitest'
import {
  maxFileCharacters,
  readXml,
  textsAt,
} from '../../../../engine/sip-server/program/xml-file.ts'

test('texts and attributes at a path, without remarks and white space', () => {
  const root = readXml(`\uFEFF<?xml version="1.0"?><drachtio><!-- remark -->
    <admin port="9022"> 127.0.0.1 </admin><a><b>1</b><b><![CDATA[<2>]]>&amp;</b></a></drachtio>`)
  expect(textsAt(root, 'admin')).toEqual(['127.0.0.1'])
  expect(textsAt(root, 'admin@port')).toEqual(['9022'])
  expect(textsAt(root, 'a/b')).toEqual(['1', '<2>&'])
  expect(textsAt(root, 'a/c@d')).toEqual([])
})

const bombs = '<!DOCTYPE drachtio [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'

test.each([
  ['another document', '<sip/>', 'has no element <drachtio>'],
  ['no XML', 'port=9022', 'line 1: '],
  ['an element that does not end', '<drachtio>\n<sip></drachtio>', 'line 2: '],
  ['a document type', `${bombs}<drachtio>&b;</drachtio>`, 'a document type is not read'],
  ['an unknown entity', '<drachtio>&b;</drachtio>', 'line 1: Invalid character entity'],
  ['depth', `<drachtio>${'<a>'.repeat(40)}${'</a>'.repeat(40)}</drachtio>`, 'too many elements'],
  ['many elements', `<drachtio>${'<a/>'.repeat(10_001)}</drachtio>`, 'too many elements'],
  ['a large file', ' '.repeat(maxFileCharacters + 1), 'is larger than 1048576 characters'],
])('%s is refused', (_what, xml, problem) => {
  expect(() => readXml(xml)).toThrow(problem)
})
