// SPDX-License-Identifier: Apache-2.0
// Headers in other languages, word by word in the words of column_words.cc.
#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "import/column_words.h"

namespace headroom {

namespace {

using Translation = std::pair<std::string_view, std::string_view>;

bool is_latin(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// What Chinese monitors write, the longer first, and signs of more than a byte.
constexpr std::array kChinese{
    Translation{"图形处理器", " gpu "},
    Translation{"处理器", " cpu "},
    Translation{"内存", " ram "},
    Translation{"显存占用率", " mem occupancy "},  // how full it is
    Translation{"占用率", " usage "},
    Translation{"显卡编号", " gpu index "},
    Translation{"显卡", " gpu "},
    Translation{"利用率", " util "},
    Translation{"使用率", " util "},
    Translation{"显存占用", " mem used "},
    Translation{"显存使用", " mem used "},
    Translation{"显存总量", " mem total "},
    Translation{"显存", " mem "},
    Translation{"已使用", " used "},
    Translation{"已用", " used "},
    Translation{"总", " total "},
    Translation{"核心", " core "},
    Translation{"百分比", " percent "},
    Translation{"平均", " avg "},
    Translation{"采样", " sample "},
    Translation{"记录", " log "},
    Translation{"日期", " date "},
    Translation{"温度", " temp "},
    Translation{"功耗", " power "},
    Translation{"功率", " power "},
    Translation{"时间戳", " timestamp "},
    Translation{"时间", " time "},
    Translation{"编号", " index "},
    Translation{"名称", " name "},
    Translation{"GPUメモリ", " gpu mem "},
    Translation{"メモリ", " ram "},
    Translation{"使用量", " used "},
    Translation{"消費電力", " power "},
    Translation{"電力", " power "},
    Translation{"クロック", " clock "},
    Translation{"日時", " timestamp "},
    Translation{"時刻", " time "},
    Translation{"사용률", " util "},
    Translation{"사용량", " used "},
    Translation{"메모리", " mem "},
    Translation{"전력", " power "},
    Translation{"온도", " temp "},
    Translation{"시간", " time "},
    Translation{"시각", " time "},
    Translation{"일시", " timestamp "},
    Translation{"Загрузка", " load "},
    Translation{"загрузка", " load "},
    Translation{"Использование", " usage "},
    Translation{"использовано", " used "},
    Translation{"Видеопамять", " gpu mem "},
    Translation{"видеопамять", " gpu mem "},
    Translation{"Память", " mem "},
    Translation{"память", " mem "},
    Translation{"Температура", " temp "},
    Translation{"температура", " temp "},
    Translation{"Мощность", " power "},
    Translation{"мощность", " power "},
    Translation{"Частота", " clock "},
    Translation{"частота", " clock "},
    Translation{"Время", " time "},
    Translation{"время", " time "},
    Translation{"Дата", " date "},
    Translation{"дата", " date "},
    Translation{"ГП", " gpu "},
    Translation{"ЦП", " cpu "},
    Translation{"ОЗУ", " ram "},
    Translation{"МБ", "MB"},
    Translation{"МиБ", "MiB"},
    Translation{"ГБ", "GB"},
    Translation{"Вт", "W"},
    Translation{"МГц", "MHz"},
    Translation{"℃", "C"},
    Translation{"（", "("},
    Translation{"）", ")"},
    Translation{"％", "%"},
    Translation{"：", ":"},
    Translation{"–", " "},
    Translation{"—", " "},
    Translation{"\xe2\x80\xaf", " "},
    Translation{"\xe2\x80\x89", " "},
    Translation{"\xe3\x80\x80", " "},
};

// What monitors write in other languages of Europe, without accents; "und" and its like stand between a date and a
// time.
constexpr std::array kForeign{
    Translation{"auslastung", "util"},
    Translation{"nutzung", "usage"},
    Translation{"speicher", "mem"},
    Translation{"grafikspeicher", "mem"},
    Translation{"videospeicher", "mem"},
    Translation{"belegt", "used"},
    Translation{"belegter", "used"},
    Translation{"genutzt", "used"},
    Translation{"genutzter", "used"},
    Translation{"benutzt", "used"},
    Translation{"verwendet", "used"},
    Translation{"gesamt", "total"},
    Translation{"gesamter", "total"},
    Translation{"leistung", "power"},
    Translation{"leistungsaufnahme", "power"},
    Translation{"temperatur", "temp"},
    Translation{"takt", "clock"},
    Translation{"zeit", "time"},
    Translation{"uhrzeit", "time"},
    Translation{"zeitstempel", "timestamp"},
    Translation{"zeitpunkt", "timestamp"},
    Translation{"datum", "date"},
    Translation{"grafikkarte", "gpu"},
    Translation{"karte", "card"},
    Translation{"nummer", "number"},
    Translation{"charge", "load"},
    Translation{"memoire", "mem"},
    Translation{"utilise", "used"},
    Translation{"utilisee", "used"},
    Translation{"occupee", "used"},
    Translation{"totale", "total"},
    Translation{"puissance", "power"},
    Translation{"consommation", "power"},
    Translation{"consumo", "power"},
    Translation{"belasting", "load"},
    Translation{"obciazenie", "load"},
    Translation{"pamiec", "mem"},
    Translation{"czas", "time"},
    Translation{"moc", "power"},
    Translation{"verbrauch", "power"},
    Translation{"stromverbrauch", "power"},
    Translation{"ventilateur", "fan"},
    Translation{"frequence", "clock"},
    Translation{"horodatage", "timestamp"},
    Translation{"heure", "time"},
    Translation{"carte", "card"},
    Translation{"numero", "number"},
    Translation{"utilizacion", "util"},
    Translation{"uso", "usage"},
    Translation{"memoria", "mem"},
    Translation{"usada", "used"},
    Translation{"utilizada", "used"},
    Translation{"potencia", "power"},
    Translation{"temperatura", "temp"},
    Translation{"fecha", "date"},
    Translation{"hora", "time"},
    Translation{"carga", "load"},
    Translation{"carico", "load"},
    Translation{"usado", "used"},
    Translation{"utilizado", "used"},
    Translation{"ocupada", "used"},
    Translation{"de", ""},
    Translation{"del", ""},
    Translation{"da", ""},
    Translation{"do", ""},
    Translation{"du", ""},
    Translation{"della", ""},
    Translation{"der", ""},
    Translation{"van", ""},
    Translation{"tiempo", "time"},
    Translation{"tarjeta", "card"},
    Translation{"frecuencia", "clock"},
    Translation{"utilizacao", "util"},
    Translation{"utilizzo", "util"},
    Translation{"utilizzata", "used"},
    Translation{"usata", "used"},
    Translation{"potenza", "power"},
    Translation{"ora", "time"},
    Translation{"scheda", "card"},
    Translation{"placa", "card"},
    Translation{"frequenza", "clock"},
    Translation{"frequencia", "clock"},
    Translation{"gebruik", "usage"},
    Translation{"gebruikt", "used"},
    Translation{"geheugen", "mem"},
    Translation{"vermogen", "power"},
    Translation{"temperatuur", "temp"},
    Translation{"tijd", "time"},
    Translation{"tijdstip", "timestamp"},
    Translation{"kaart", "card"},
};

// Letters with accents, of UTF-8's two bytes (of which the first is 0xC3) or of Windows-1252's one, without.
std::string without_accents(std::string_view text) {
  constexpr std::string_view kPlain =
      "aaaaaaaceeeeiiiidnooooo ouuuuyts";  // of 0xE0 to 0xFF, and of capitals 0x20 before
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool two = (byte == 0xc2 || byte == 0xc3) && next >= 0x80 && next < 0xc0;
    const unsigned letter = two ? (byte == 0xc3 ? next + 0x40U : next) : byte;
    if (byte >= 0x80 && !two && next >= 0x80) {
      plain += text[i];  // of a longer character
      continue;
    }
    if (two) ++i;
    if (letter >= 0xc0)
      plain += kPlain[letter & 0x1fU];
    else if (letter == 0xa0)
      plain += ' ';
    else if (letter != 0xb0)  // of degrees
      plain += text[i];
  }
  return plain;
}

}  // namespace

std::string in_english(std::string_view header) {
  std::string text(header);
  if (text.size() > kLongestHeader) return text;
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    for (const auto& [chinese, english] : kChinese)
      for (auto at = text.find(chinese); at != std::string::npos; at = text.find(chinese, at + english.size()))
        text.replace(at, chinese.size(), english);
    text = without_accents(text);
  }
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    for (end = begin; end < text.size() && is_latin(text[end]);) ++end;
    const std::string word = lower(std::string_view(text).substr(begin, end - begin));
    const auto known =
        std::find_if(kForeign.begin(), kForeign.end(), [&](const Translation& p) { return p.first == word; });
    if (known == kForeign.end()) continue;
    text.replace(begin, end - begin, known->second);
    end = begin + known->second.size();
  }
  return text;
}

}  // namespace headroom
