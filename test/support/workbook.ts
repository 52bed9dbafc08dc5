/** Small workbooks (.xlsx), as a spreadsheet writes them, and archives that are none. */
import { crc32, deflateRawSync } from 'node:zlib'

export type WorkbookCell = string | number | Date | null

interface ArchiveFile {
  readonly name: string
  readonly text: string | Buffer
}

/** One sheet, whose rows have texts, numbers and dates. */
export function workbook(rows: readonly (readonly WorkbookCell[])[], sheet = 'Rates'): Buffer {
  const xml = (text: string) => `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>${text}`
  const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
  const relations = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  return archive([
    {
      name: '[Content_Types].xml',
      text: xml('<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'),
    },
    {
      name: 'xl/workbook.xml',
      text: xml(
        `<workbook xmlns="${main}" xmlns:r="${relations}"><sheets>` +
          `<sheet name="${sheet}" sheetId="1" r:id="rId1"/></sheets></workbook>`,
      ),
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      text: xml(
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">' +
          `<Relationship Id="rId1" Type="${relations}/worksheet" Target="worksheets/sheet1.xml"/>` +
          `<Relationship Id="rId2" Type="${relations}/styles" Target="styles.xml"/></Relationships>`,
      ),
    },
    {
      name: 'xl/styles.xml',
      text: xml(
        `<styleSheet xmlns="${main}"><cellXfs count="2"><xf numFmtId="0"/>` +
          '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
      ),
    },
    {
      name: 'xl/worksheets/sheet1.xml',
      text: xml(
        `<worksheet xmlns="${main}"><sheetData>${rows.map(rowXml).join('')}</sheetData></worksheet>`,
      ),
    },
  ])
}

const rowXml = (cells: readonly WorkbookCell[], index: number): string =>
  `<row r="${index + 1}">${cells.map((cell, at) => cellXml(cell, at, index + 1)).join('')}</row>`

const DAY_MS = 86_400_000
/** Days of a spreadsheet are counted from here. */
const epoch = Date.UTC(1899, 11, 30)

function cellXml(cell: WorkbookCell, at: number, row: number): string {
  const place = `${String.fromCharCode(65 + at)}${row}`
  if (cell === null) return ''
  if (typeof cell === 'number') return `<c r="${place}"><v>${cell}</v></c>`
  if (cell instanceof Date)
    return `<c r="${place}" s="1"><v>${(cell.getTime() - epoch) / DAY_MS}</v></c>`
  const text = cell.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<c r="${place}" t="inlineStr"><is><t>${text}</t></is></c>`
}

/** A ZIP archive of these files. */
export function archive(files: readonly ArchiveFile[]): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, text } of files) {
    const bytes = Buffer.from(text)
    const packed = deflateRawSync(bytes)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(8, 4)
    common.writeUInt32LE(crc32(bytes), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(bytes.length, 18)
    common.writeUInt16LE(Buffer.byteLength(name), 22)
    const local = Buffer.concat([Buffer.from('PK\u0003\u0004'), common, Buffer.from(name), packed])
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    directory.push(
      Buffer.concat([Buffer.from('PK\u0001\u0002\u0014\u0000'), common, place, Buffer.from(name)]),
    )
    parts.push(local)
    offset += local.length
  }
  const entries = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\u0005\u0006', 'latin1')
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(entries.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, entries, end])
}
